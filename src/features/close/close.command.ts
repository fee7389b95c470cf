import type { Command } from "commander";
import { isMonth, periodText } from "../../core/domain/months/month.ts";
import { describeProviderMonth } from "../../core/domain/months/provider.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import { dayOf } from "../../core/domain/time/days.ts";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import { EXIT, firstExit } from "../../terminal/exit.ts";
import { withSource } from "../../terminal/options.ts";
import { count, instant, linesOf, tableOf } from "../../terminal/output.ts";
import { commandActor, inSessionOfSource, type Session } from "../../terminal/session.ts";
import type { Cost } from "../costs/keep-costs.store.ts";
import { describeOtherUsage } from "../costs/other-usage.ts";
import { describeUnpricedDays } from "../costs/price.ts";
import { type ClosedSource, closeSources } from "./close.ts";
import type { CloseResult } from "./close-period.store.ts";
import { type CloseRequest, OPEN_WORDS, type OpenDay, openPointsOf, stepsOf } from "./open-days.ts";

interface CloseOptions {
  readonly source?: string;
  readonly withoutCosts?: boolean;
  readonly accept?: readonly string[];
}

export const examples = [
  ["close 2026-10", "close October 2026 with its costs"],
  ["close 2026-10 --without-costs", "where no prices are stored"],
  ["close 2026-03-20", "close the billing period in which this day lies"],
] as const;

export function define(command: Command): void {
  withSource(command)
    .argument("<period>", "a month such as 2026-10, or a day of the billing period to close")
    .option(
      "--without-costs",
      "close the traces alone; close the month again once prices are imported to close its costs",
    )
    .option(
      "--accept <digest...>",
      "accept the open days, by the digest that close without this option prints",
    )
    .action(inSessionOfSource(run));
}

async function run(session: Session, options: CloseOptions, text: string): Promise<number> {
  const { settleAfterMs, redis, sources } = session.config;
  const closed = await closeSources(await session.migratedStore(), {
    period: text,
    slugs: sources.map(({ slug }) => slug),
    withoutCosts: options.withoutCosts ?? false,
    settleAfterMs,
    by: commandActor(),
    ...(options.accept === undefined ? {} : { accept: options.accept }),
  });
  const digests = closed.flatMap(({ result }) =>
    result.state === "open" && result.digest !== null ? [result.digest] : [],
  );
  session.output.data(
    closed.map(({ period, result, ...rest }) => {
      return { periodStart: period.start, periodEnd: period.end, ...toData(result), ...rest };
    }),
    () => {
      const sourceFlags = options.source === undefined ? "" : ` --source ${options.source}`;
      const withoutCosts = options.withoutCosts ?? false;
      const requested = { withoutCosts, settleAfterMs, hasRedis: redis !== undefined, digests, sourceFlags };
      return linesOf(closed.map((one) => describe(one, { ...requested, month: one.period })));
    },
  );
  return firstExit(closed.map(({ result }) => (result.state === "open" ? EXIT.mismatch : EXIT.done)));
}

function toData(result: CloseResult) {
  if (result.state !== "open") return result;
  return { ...result, open: result.open.map((one) => ({ ...one, day: dayOf(one.day) })) };
}

function describe(one: ClosedSource, requested: CloseRequest): string {
  const { source, result, unpriced, withoutCost, provider, others, lacksPrice } = one;
  const what = `${source}, ${periodText(requested.month)}`;
  const uncosted = describeUnpricedDays(unpriced);
  const steps =
    result.state === "open"
      ? stepsOf(result.open, {
          ...requested,
          // A command takes the digests of all sources or of none.
          digests: result.digest === null ? [] : (requested.digests ?? []),
          lacksPrice: lacksPrice && !requested.withoutCosts,
        })
      : [];
  return linesOf(
    result.state === "open" &&
      listOpen(
        what,
        result.open,
        steps.map(({ text }) => text),
      ),
    result.state === "closed" &&
      `${describeClosed(what, result)}${withoutText(result)}${result.traces === 0 ? "" : `; ${costsText(result.costs)}`}`,
    result.state === "costs_closed" &&
      `${what}: closed on ${result.closedAt}${withoutText(result)}; ${costsText(result.costs)}, closed now`,
    uncosted !== undefined && `${what}: ${uncosted} have no valid price: they are closed without a cost`,
    withoutCost.length > 0 &&
      `${what}: ${result.state === "open" ? "its costs would leave out" : "its costs leave out"}, in whole or in part: ${withoutCost.join(", ")}. \`usage-etl bill ${requested.month.name}${requested.sourceFlags}\` says why.`,
    result.state === "closed_before" && [
      `${what}: closed on ${result.closedAt}${withoutText(result)}; ${result.adjusted} totals were adjusted since (reporting_detail.fct_close)`,
      result.restatedOthers.length > 0 &&
        `${what}: other usage changed since: ${describeRestatements(result.restatedOthers)} (reporting_detail.usage_restatement)`,
      result.costsClosedAt === null &&
        isMonth(requested.month) &&
        `${what}: without costs. Close it again without --without-costs to close them.`,
      requested.withoutCosts === true &&
        result.costsClosedAt !== null &&
        `${what}: its costs were closed too, on ${result.costsClosedAt}.`,
    ],
    provider !== null && `${what}: ${describeProviderMonth(provider)}`,
    others.length > 0 && `${what}: ${describeOtherUsage(others)}`,
  );
}

function describeClosed(what: string, result: { traces: number; totals: number; accepted: number }): string {
  const accepted = result.accepted === 0 ? "" : `, ${result.accepted} disagreements accepted`;
  return `${what}: closed with ${count(result.traces)} traces in ${result.totals} totals${accepted}`;
}

function costsText(costs: readonly Cost[]): string {
  if (costs.length === 0) return "without costs";
  const texts = costs.map(({ cost, currency, notInvoiced }) => {
    const part =
      notInvoiced === "0" ? "" : ` (${notInvoiced} of it on no invoice: deployments by runs or uptime)`;
    return `${cost} ${currency}${part}`;
  });
  return `estimated costs: ${texts.join(", ")}`;
}

function withoutText({ without }: { without: readonly string[] }): string {
  return without.length === 0 ? "" : `, without ${without.join(", ")}`;
}

function listOpen(what: string, open: readonly OpenDay[], steps: readonly string[]): string {
  const hasOthers = open.some(({ meter }) => meter !== "traces");
  return linesOf(
    `${what}: open`,
    tableOf(openPointsOf(open), {
      usage: hasOthers && (({ meter }) => METER_NAME[meter]),
      dimension: "groupBy",
      "what is open": ({ reason }) => OPEN_WORDS[reason],
      "workspace\ndays": "days",
      first: ({ first }) => instant(first),
      last: ({ last }) => instant(last),
    }),
    "What to do:",
    steps.map((step) => `- ${step}`),
  );
}

import type { Command } from "commander";
import { describeUnpricedDays } from "../../../domain/bill/price.ts";
import { describeProviderMonth } from "../../../domain/bill/provider.ts";
import {
  type AskedClose,
  DISAGREEMENTS,
  OPEN_WORDS,
  type OpenDay,
  openPointsOf,
  stepsOf,
} from "../../../domain/months/open-days.ts";
import { describeOtherUsage } from "../../../domain/months/other-usage.ts";
import { describeRestatements } from "../../../domain/proof/restatement.ts";
import { dayOf } from "../../../domain/time/days.ts";
import { METER_NAME, METERS, meterFlags } from "../../../domain/usage/meter.ts";
import { UsageError } from "../../../errors.ts";
import {
  type ClosedPeriod,
  type ClosedSource,
  closePeriods,
  closeSources,
  isAsAsked,
} from "../../../pipeline/months/close.ts";
import type { Cost } from "../../../store/months/keep-costs.ts";
import { count, instant, linesOf, tableOf } from "../../report/output.ts";
import { EXIT, firstExit } from "../../session/exit.ts";
import { collectIds, withSource } from "../../session/options.ts";
import { commandActor, inSessionOfSource, type Session } from "../../session/session.ts";

interface CloseOptions {
  readonly source?: string;
  readonly acceptDisagreements?: boolean;
  readonly without?: readonly string[];
  readonly withoutCosts?: boolean;
  readonly expect?: readonly string[];
  readonly period?: string;
}

export const examples = [
  ["close 2026-10", "close October 2026 with its costs"],
  ["close 2026-10 --without-costs", "where no prices are stored"],
] as const;

export function define(command: Command): void {
  withSource(command)
    .argument("[month]")
    .option("--period <day>", "close the billing period in which this day lies, in place of a calendar month")
    .option(
      "--without <workspace...>",
      "leave out this workspace: its totals are not in the close",
      collectIds,
    )
    .option(
      "--without-costs",
      "close the traces alone; close the month again once prices are imported to close its costs",
    )
    .option(
      "--accept-disagreements",
      "close although the platform contradicts itself on some days; they stay listed",
    )
    .option(
      "--expect <digest...>",
      "close only what has one of these digests, which close without it and the page of the month show",
    )
    .action(inSessionOfSource(run));
}

async function run(session: Session, options: CloseOptions, text?: string): Promise<number> {
  const { period, without: leftOut, withoutCosts = false, expect } = options;
  const isOfMonth = text !== undefined || leftOut !== undefined || withoutCosts || expect !== undefined;
  if (period !== undefined && !isOfMonth) return runPeriod(session, period, options);
  if (text === undefined || period !== undefined) {
    throw new UsageError({
      code: "close_unclear",
      message:
        text === undefined && period === undefined
          ? "No month is given."
          : "--period stands by itself: it takes no month, no --without, no --without-costs and no --expect.",
      next: "Give a month such as 2026-03, or --period with a day of the billing period.",
    });
  }
  const { settleAfterMs, redis, sources } = session.config;
  const { month, closed } = await closeSources(await session.migratedStore(), {
    month: text,
    slugs: sources.map(({ slug }) => slug),
    without: leftOut ?? [],
    withoutCosts,
    acceptDisagreements: options.acceptDisagreements ?? false,
    settleAfterMs,
    by: commandActor(),
    ...(expect === undefined ? {} : { expectedDigests: expect }),
  });
  const digests = closed.flatMap(({ result }) =>
    result.state === "open" && result.digest !== null ? [result.digest] : [],
  );
  session.output.data(
    closed.map(({ source, result, unpriced, withoutCost, provider, others, lacksPrice }) => {
      return { source, ...toData(result), unpriced, withoutCost, provider, others, lacksPrice };
    }),
    () => {
      const sourceFlags = options.source === undefined ? "" : ` --source ${options.source}`;
      const asked = {
        month,
        withoutCosts,
        settleAfterMs,
        hasRedis: redis !== undefined,
        digests,
        sourceFlags,
      };
      return linesOf(closed.map((one) => describeMonth(one, { ...asked, without: one.asked })));
    },
  );
  return firstExit(closed.map((one) => (isAsAsked(one) ? EXIT.done : EXIT.mismatch)));
}

async function runPeriod(session: Session, day: string, options: CloseOptions): Promise<number> {
  const { settleAfterMs, sources } = session.config;
  const closed = await closePeriods(await session.migratedStore(), {
    day,
    slugs: sources.map(({ slug }) => slug),
    acceptDisagreements: options.acceptDisagreements ?? false,
    settleAfterMs,
    by: commandActor(),
  });
  session.output.data(
    closed.map(({ source, period, result, others }) => {
      return { source, periodStart: period.start, periodEnd: period.end, ...toData(result), others };
    }),
    () => linesOf(closed.map(describePeriod)),
  );
  return firstExit(closed.map(({ result }) => (result.state === "open" ? EXIT.mismatch : EXIT.done)));
}

function toData<R extends { readonly state: string }>(result: R) {
  if (!("open" in result)) return result;
  const open = (result.open as readonly OpenDay[]).map((one) => ({ ...one, day: dayOf(one.day) }));
  return { ...result, open };
}

function describePeriod({ source, period, result, others }: ClosedPeriod): string {
  const what = `${source}, billing period ${period.start} to ${period.end}`;
  return linesOf(
    result.state === "open" && describeOpenPeriod(what, result.open, period),
    result.state === "closed" && describeClosed(what, result),
    result.state === "closed_before" &&
      `${what}: closed on ${result.closedAt} (reporting_detail.usage_period_close)`,
    others.length > 0 && `${what}: ${describeOtherUsage(others)}`,
  );
}

function describeMonth(one: ClosedSource, asked: AskedClose): string {
  const { source, result, unpriced, withoutCost, provider, others, lacksPrice } = one;
  const what = `${source}, ${asked.month.name}`;
  const uncosted = describeUnpricedDays(unpriced);
  const steps =
    result.state === "open"
      ? stepsOf(result.open, { ...asked, lacksPrice: lacksPrice && !asked.withoutCosts })
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
      `${what}: ${result.state === "open" ? "its costs would leave out" : "its costs leave out"}, in whole or in part: ${withoutCost.join(", ")}. \`usage-etl bill ${asked.month.name}${asked.sourceFlags}\` says why.`,
    result.state === "closed_before" && [
      `${what}: closed on ${result.closedAt}${withoutText(result)}; ${result.adjusted} totals were adjusted since (reporting_detail.fct_month_close_by_dimension)`,
      result.restatedOthers.length > 0 &&
        `${what}: other usage changed since: ${describeRestatements(result.restatedOthers)} (reporting_detail.usage_restatement)`,
      result.costsClosedAt === null &&
        `${what}: without costs. Close it again without --without-costs to close them.`,
      asked.withoutCosts === true &&
        result.costsClosedAt !== null &&
        `${what}: its costs were closed too, on ${result.costsClosedAt}.`,
    ],
    result.state !== "open" &&
      !isAsAsked(one) &&
      `${what}: a month closes once. Which workspaces are left out cannot be changed now.`,
    `${what}: ${describeProviderMonth(provider)}`,
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

function describeOpenPeriod(
  what: string,
  open: readonly OpenDay[],
  { start, end }: { start: string; end: string },
): string {
  const unloaded = open.filter(({ reason }) => !DISAGREEMENTS.includes(reason));
  if (unloaded.length === 0) {
    const accept = `usage-etl close --period ${start} --accept-disagreements`;
    return listOpen(what, open, [`Ask the platform about what differs there, or accept it: \`${accept}\``]);
  }
  const meters = METERS.filter((meter) => unloaded.some((one) => one.meter === meter));
  return listOpen(what, open, [
    ...meters.map((meter) => {
      const isAll = meter === "traces";
      const tierFlags = isAll ? "" : ` ${meterFlags(meter)}`;
      return `Load what is missing or provisional${isAll ? "" : ` of ${METER_NAME[meter]}`}: \`usage-etl backfill --from ${start} --to ${end}${tierFlags}\``;
    }),
    `Reconcile with the export: \`usage-etl reconcile --from ${start} --to ${end} --repair\``,
  ]);
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

import type { Command } from "commander";
import { describeProviderMonth } from "../../../domain/bill/provider-month-sentence.ts";
import { type AskedClose, checkListOf, stepsOf } from "../../../domain/months/check-list.ts";
import { DISAGREEMENTS, OPEN_WORDS, type OpenDay } from "../../../domain/months/open-day.ts";
import { describeOtherUsage } from "../../../domain/months/other-usage.ts";
import { METER_NAME, METERS, meterFlags } from "../../../domain/usage/meter.ts";
import { UsageError } from "../../../errors.ts";
import { type ClosedSource, closeSources, isAsAsked } from "../../../pipeline/months/close.ts";
import { type ClosedPeriod, closePeriods } from "../../../pipeline/months/close-periods.ts";
import { instant, table } from "../../report/output.ts";
import { EXIT, firstExit } from "../../session/exit.ts";
import { commandActor, inSession, type Session } from "../../session/session.ts";

interface CloseOptions {
  readonly acceptDisagreements?: boolean;
  readonly without?: readonly string[];
  readonly expect?: readonly string[];
  readonly period?: string;
}

export function define(command: Command): void {
  command
    .argument("[month]")
    .option("--period <day>", "close the billing period in which this day lies, in place of a calendar month")
    .option(
      "--without <workspace...>",
      "leave out this workspace: its totals are not in the close",
      (id: string, before: string[] | undefined) => [...(before ?? []), id.toLowerCase()],
    )
    .option(
      "--accept-disagreements",
      "close although the platform contradicts itself on some days; they stay listed",
    )
    .option(
      "--expect <digest...>",
      "close only what has one of these digests, which close without it and the page of the month show",
    )
    .action(inSession(run));
}

async function run(session: Session, options: CloseOptions, text?: string): Promise<number> {
  const { period, without: leftOut, expect } = options;
  if (period !== undefined && text === undefined && leftOut === undefined && expect === undefined) {
    return runPeriod(session, period, options);
  }
  if (text === undefined || period !== undefined) {
    throw new UsageError({
      code: "close_unclear",
      message:
        text === undefined && period === undefined
          ? "No month is given."
          : "--period stands by itself: it takes no month, no --without and no --expect.",
      next: "Give a month such as 2026-03, or --period with a day of the billing period.",
    });
  }
  const { settleAfterMs, redis, sources } = session.config;
  const { month, closed } = await closeSources(await session.migratedStore(), {
    ...{ month: text, slugs: sources.map(({ slug }) => slug), settleAfterMs, by: commandActor() },
    ...{ without: options.without ?? [], acceptDisagreements: options.acceptDisagreements ?? false },
    ...(options.expect === undefined ? {} : { expectedDigests: options.expect }),
  });
  const digests = closed.flatMap(({ result }) =>
    result.state === "open" && result.digest !== null ? [result.digest] : [],
  );
  session.output.data(
    closed.map(({ source, result, provider, others }) => ({ source, ...result, provider, others })),
    () => {
      const asked = { month, settleAfterMs, hasRedis: redis !== undefined, digests };
      return closed
        .map((one) => {
          const said = describeClose(one, { ...asked, without: one.asked });
          const what = `${one.source}, ${month.name}`;
          return `${said}\n${what}: ${describeProviderMonth(one.provider)}${describeOthers(what, one.others)}`;
        })
        .join("\n");
    },
  );
  return firstExit(closed.map((one) => (isAsAsked(one) ? EXIT.done : EXIT.mismatch)));
}

async function runPeriod(session: Session, day: string, options: CloseOptions): Promise<number> {
  const { settleAfterMs, sources } = session.config;
  const closed = await closePeriods(await session.migratedStore(), {
    ...{ day, slugs: sources.map(({ slug }) => slug), settleAfterMs, by: commandActor() },
    acceptDisagreements: options.acceptDisagreements ?? false,
  });
  session.output.data(
    closed.map(({ source, period, result, others }) => ({
      ...{ source, periodStart: period.start, periodEnd: period.end },
      ...{ ...result, others },
    })),
    () => closed.map(describePeriod).join("\n"),
  );
  return firstExit(closed.map(({ result }) => (result.state === "open" ? EXIT.mismatch : EXIT.done)));
}

function describePeriod(one: ClosedPeriod): string {
  const what = `${one.source}, billing period ${one.period.start} to ${one.period.end}`;
  return `${describePeriodClose(what, one)}${describeOthers(what, one.others)}`;
}

/** What the close says of other usage than traces of all tiers, as a line of its own. */
function describeOthers(what: string, others: ClosedPeriod["others"]): string {
  return others.length === 0 ? "" : `\n${what}: ${describeOtherUsage(others)}`;
}

function describePeriodClose(what: string, { period, result }: ClosedPeriod): string {
  if (result.state === "open") return describeOpenPeriod(what, result.open, period);
  if (result.state === "closed_before")
    return `${what}: closed on ${result.closedAt} (reporting.usage_period_close)`;
  const accepted = result.accepted === 0 ? "" : `, ${result.accepted} disagreements accepted`;
  return `${what}: closed with ${result.traces.toLocaleString("en-US")} traces in ${result.totals} totals${accepted}`;
}

function describeClose(one: ClosedSource, asked: AskedClose): string {
  const { source, result } = one;
  const what = `${source}, ${asked.month.name}`;
  if (result.state === "open") return describeOpen(what, result.open, asked);
  const without = result.without.length === 0 ? "" : `, without ${result.without.join(", ")}`;
  if (result.state === "closed") {
    const accepted = result.accepted === 0 ? "" : `, ${result.accepted} disagreements accepted`;
    return `${what}: closed with ${result.traces.toLocaleString("en-US")} traces in ${result.totals} totals${accepted}${without}`;
  }
  const { adjusted, closedAt } = result;
  const line = `${what}: closed on ${closedAt}${without}; ${adjusted} totals were adjusted since (reporting.usage_month_close)`;
  return isAsAsked(one)
    ? line
    : `${line}\n${what}: a month closes once. Which workspaces are left out cannot be changed now.`;
}

/** What keeps a month open: as a table, then each step that helps, with the command that takes it. */
export function describeOpen(what: string, open: readonly OpenDay[], asked: AskedClose): string {
  const steps = stepsOf(open, asked).map(({ text }) => `- ${text}`);
  return [...listOpen(what, open), "What to do:", ...steps].join("\n");
}

/** The same of a billing period, with the commands that load and prove its days. */
export function describeOpenPeriod(
  what: string,
  open: readonly OpenDay[],
  { start, end }: { start: string; end: string },
): string {
  const meters = METERS.filter((meter) =>
    open.some((one) => one.meter === meter && !DISAGREEMENTS.includes(one.reason)),
  );
  const canAccept = open.every(({ reason }) => DISAGREEMENTS.includes(reason));
  const steps = canAccept
    ? [
        `Ask the platform about what differs there, or accept it: \`usage-etl close --period ${start} --accept-disagreements\``,
      ]
    : [
        ...meters.map((meter) => {
          const [of, tierFlags] =
            meter === "traces" ? ["", ""] : [` of ${METER_NAME[meter]}`, ` ${meterFlags(meter)}`];
          return `Load what is missing or provisional${of}: \`usage-etl backfill --from ${start} --to ${end}${tierFlags}\``;
        }),
        `Then reconcile with the export: \`usage-etl reconcile --from ${start} --to ${end} --repair\``,
      ];
  return [...listOpen(what, open), "What to do:", ...steps.map((step) => `- ${step}`)].join("\n");
}

function listOpen(what: string, open: readonly OpenDay[]): string[] {
  const hasOthers = open.some(({ meter }) => meter !== "traces");
  const rows = checkListOf(open).map(({ meter, groupBy, reason, days, first, last }) => [
    ...(hasOthers ? [METER_NAME[meter]] : []),
    ...[groupBy, OPEN_WORDS[reason], days, instant(first), instant(last)],
  ]);
  return [
    `${what}: open`,
    table(
      [...(hasOthers ? ["usage"] : []), "dimension", "what is open", "days x\nworkspaces", "first", "last"],
      rows,
    ),
  ];
}

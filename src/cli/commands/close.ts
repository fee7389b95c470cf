import type { Command } from "commander";
import { DateTime } from "luxon";
import { UsageError } from "../../errors.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { type CloseResult, closeMonth, OPEN_REASONS, type OpenDay } from "../../store/report/month-close.ts";
import { type ListedSource, listSources } from "../../store/report/overview.ts";
import { instant, table } from "../report/output.ts";
import { EXIT, firstExit } from "../session/exit.ts";
import { inSession, type Session } from "../session/session.ts";

export function addCloseCommand(program: Command): void {
  program
    .command("close <month>")
    .description("close a month such as 2026-03: record its totals once every day is final and reconciled")
    .option(
      "--accept-disagreements",
      "close although the platform contradicts itself on some days; they stay listed",
    )
    .action(inSession(run));
}

async function run(
  session: Session,
  { acceptDisagreements = false }: { acceptDisagreements?: boolean },
  text: string,
): Promise<number> {
  const store = await session.migratedStore();
  const month = parseMonth(text, await storeNow(store.db));
  const results: Record<string, CloseResult> = {};
  for (const { sourceId, slug, range } of withinMonth(month, await sourcesOf(session, store.db), text)) {
    // Empty: all listed workspaces.
    const { workspaceIds = [] } = session.config.sources.find((source) => source.slug === slug) ?? {};
    const given = { sourceId, range, monthStart: month.toISODate(), workspaceIds };
    results[slug] = await closeMonth(store, given, { acceptDisagreements });
  }
  session.output.data(results, () =>
    Object.entries(results)
      .map(([source, result]) => describeClose(`${source}, ${text}`, result))
      .join("\n"),
  );
  const exits = Object.values(results).map(({ state }) => (state === "open" ? EXIT.mismatch : EXIT.done));
  return firstExit(exits);
}

/** The stored sources that are configured, or all if none is. A source that was only tried must not block a close. */
async function sourcesOf({ config }: Session, db: Database): Promise<ListedSource[]> {
  const listed = await listSources(db);
  const named = config.sources.map(({ slug }) => slug);
  const meant = named.length === 0 ? listed : listed.filter(({ source }) => named.includes(source));
  if (meant.length > 0) return meant;
  throw new UsageError({
    code: "source_unloaded",
    message: `Nothing is loaded for ${named.length === 0 ? "any source" : `source ${named.join(", ")}`}.`,
    next: `Run \`usage-etl sync\` first.${listed.length === 0 ? "" : ` Loaded sources: ${listed.map(({ source }) => source).join(", ")}.`}`,
  });
}

function parseMonth(text: string, now: number): DateTime<true> {
  const month = DateTime.fromFormat(text, "yyyy-MM", { zone: "utc" });
  if (!month.isValid) {
    throw new UsageError({
      code: "month_invalid",
      message: `${JSON.stringify(text)} is not a month.`,
      next: "Give a year and a month, such as 2026-03.",
    });
  }
  if (month.plus({ months: 1 }).toMillis() > now) {
    throw new UsageError({
      code: "month_not_over",
      message: `${text} is not over yet.`,
      next: "Close it when its last day is final (USAGE_SETTLE_AFTER after its end) and reconciled.",
    });
  }
  return month;
}

/** The days of a month that each source has data for. Error: `month_before_data` if that is none. */
function withinMonth(month: DateTime<true>, sources: readonly ListedSource[], text: string) {
  const end = month.plus({ months: 1 }).toMillis();
  const within = sources.flatMap(({ sourceId, source: slug, dataStart }) => {
    const start = Math.max(month.toMillis(), Date.parse(`${dataStart}T00:00:00Z`));
    return start < end ? [{ sourceId, slug, range: { start, end } }] : [];
  });
  if (within.length > 0) return within;
  throw new UsageError({
    code: "month_before_data",
    message: `${text} ends before the data of source ${sources[0]?.source} starts (${sources[0]?.dataStart}).`,
    next: "Choose a later month.",
  });
}

const NEXT: Readonly<Record<OpenDay["reason"], string>> = {
  missing: "not loaded: run usage-etl sync",
  failed: "failed: usage-etl status shows why",
  unverified: "workspace access is not proven: see usage-etl status",
  provisional: "provisional: wait for USAGE_SETTLE_AFTER and the next sync",
  open: "differs from the export: run usage-etl reconcile --repair",
  not_reconciled: "not reconciled with the export: run usage-etl reconcile",
  platform_disagrees:
    "the platform's JSON and export differ: ask the platform, or use --accept-disagreements",
  total_differs: "the platform's totals differ: ask the platform, or use --accept-disagreements",
};

function describeClose(what: string, result: CloseResult): string {
  if (result.state === "closed") {
    const accepted = result.accepted === 0 ? "" : `, ${result.accepted} disagreements accepted`;
    return `${what}: closed with ${result.traces.toLocaleString("en-US")} traces in ${result.totals} totals${accepted}`;
  }
  if (result.state === "closed_before") {
    const { adjusted, closedAt } = result;
    return `${what}: closed on ${closedAt}; ${adjusted} totals were adjusted since (reporting.usage_month_close)`;
  }
  const groups = Map.groupBy(result.open, (one) => `${one.reason} ${one.groupBy}`);
  const rows = [...groups.values()]
    .map((group) => ({ group, ...(group[0] as OpenDay), last: group.at(-1) as OpenDay }))
    .sort((a, b) => OPEN_REASONS.indexOf(a.reason) - OPEN_REASONS.indexOf(b.reason))
    .map(({ group, groupBy, reason, day, last }) => {
      const workspaces = new Set(group.map((one) => one.workspaceId)).size;
      return [groupBy, NEXT[reason], group.length, workspaces, instant(day), instant(last.day)];
    });
  const head = ["dimension", "what is open", "days x workspaces", "workspaces", "first", "last"];
  return `${what}: open\n${table(head, rows)}`;
}

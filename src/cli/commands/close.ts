import type { Command } from "commander";
import { DateTime } from "luxon";
import type { Config } from "../../config/config.ts";
import { UsageError } from "../../errors.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { type CloseResult, closeMonth, OPEN_REASONS, type OpenDay } from "../../store/report/month-close.ts";
import { type ListedSource, listSources } from "../../store/report/overview.ts";
import { instant, table } from "../report/output.ts";
import { EXIT, firstExit } from "../session/exit.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

interface CloseOptions {
  readonly acceptDisagreements?: boolean;
}

export function addCloseCommand(program: Command): void {
  program
    .command("close <month>")
    .description("write down what a month such as 2026-03 came to, once every day of it is final and proved")
    .option(
      "--accept-disagreements",
      "close although the platform contradicts itself on some days (they stay shown)",
    )
    .action(inSession(run));
}

async function run(session: Session, options: CloseOptions, text: string): Promise<number> {
  const store = await session.store();
  await requireSchema(store);
  const month = parseMonth(text, await storeNow(store.db));
  const results: Record<string, CloseResult> = {};
  for (const { source, range } of sourcesWithin(month, await sourcesOf(session, store.db), text)) {
    results[source.source] = await closeMonth(
      store,
      {
        sourceId: source.sourceId,
        range,
        monthStart: month.toISODate(),
        workspaceIds: workspacesOf(session.config, source.source),
      },
      { acceptDisagreements: options.acceptDisagreements ?? false },
    );
  }
  session.output.data(results, () =>
    Object.entries(results)
      .map(([source, result]) => describeClose(`${source}, ${text}`, result))
      .join("\n"),
  );
  const exits = Object.values(results).map(({ state }) => (state === "open" ? EXIT.mismatch : EXIT.done));
  return firstExit(exits);
}

/** The configured sources, so that none that was only tried stands in the way; all where none is configured. */
async function sourcesOf({ config }: Session, db: Database): Promise<ListedSource[]> {
  const listed = await listSources(db);
  const named = config.sources.map(({ slug }) => slug);
  const meant = named.length === 0 ? listed : listed.filter(({ source }) => named.includes(source));
  if (meant.length > 0) return meant;
  throw new UsageError({
    code: "source_unloaded",
    message: `Nothing was ever loaded of ${named.length === 0 ? "any source" : `source ${named.join(", ")}`}.`,
    next: `Run \`usage-etl sync\` first${listed.length === 0 ? "" : `; loaded are ${listed.map(({ source }) => source).join(", ")}`}.`,
  });
}

function parseMonth(text: string, now: number): DateTime<true> {
  const month = DateTime.fromISO(text, { zone: "utc" });
  if (!/^\d{4}-\d{2}$/.test(text) || !month.isValid) {
    throw new UsageError({
      code: "month_invalid",
      message: `${JSON.stringify(text)} is not a month.`,
      next: "Give year and month, such as 2026-03.",
    });
  }
  if (month.plus({ months: 1 }).toMillis() > now) {
    throw new UsageError({
      code: "month_not_over",
      message: `${text} is not over.`,
      next: "Close it once its last day is settled (USAGE_SETTLE_AFTER after its end) and reconciled.",
    });
  }
  return month;
}

/** The days of a month from each source's data start on; a source whose data starts later has nothing to close. */
function sourcesWithin(month: DateTime<true>, sources: readonly ListedSource[], text: string) {
  const end = month.plus({ months: 1 }).toMillis();
  const within = sources.flatMap((source) => {
    const start = Math.max(month.toMillis(), Date.parse(`${source.dataStart}T00:00:00Z`));
    return start < end ? [{ source, range: { start, end } }] : [];
  });
  const [first] = sources as readonly [ListedSource, ...ListedSource[]];
  if (within.length > 0) return within;
  throw new UsageError({
    code: "month_before_data",
    message: `${text} ends before the data of source ${first.source} starts (${first.dataStart}).`,
    next: "Nothing is to be closed there.",
  });
}

/** Those that the configuration names; empty: all that are listed. */
function workspacesOf(config: Config, slug: string): readonly string[] {
  return config.sources.find((source) => source.slug === slug)?.workspaceIds ?? [];
}

const NEXT: Readonly<Record<OpenDay["reason"], string>> = {
  missing: "not loaded: usage-etl sync",
  failed: "failed: usage-etl status says why",
  unverified: "nothing shows that the key can read it: usage-etl status",
  provisional: "not settled yet: wait for USAGE_SETTLE_AFTER and the next round",
  open: "differs from the export: usage-etl reconcile --repair",
  not_reconciled: "not held against the export: usage-etl reconcile",
  platform_disagrees: "the platform's JSON and export differ: ask the platform, or --accept-disagreements",
  total_differs: "totals of the platform differ: ask the platform, or --accept-disagreements",
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
    .sort((a, b) => OPEN_REASONS.indexOf(reasonOf(a)) - OPEN_REASONS.indexOf(reasonOf(b)))
    .map((group) => {
      const [first, last] = [group[0], group.at(-1)] as [OpenDay, OpenDay];
      const workspaces = new Set(group.map((one) => one.workspaceId)).size;
      return [
        first.groupBy,
        NEXT[first.reason],
        group.length,
        workspaces,
        instant(first.day),
        instant(last.day),
      ];
    });
  const head = ["group_by", "what is open", "days x workspaces", "workspaces", "first", "last"];
  return `${what}: open\n${table(head, rows)}`;
}

function reasonOf(group: readonly OpenDay[]): OpenDay["reason"] {
  return (group[0] as OpenDay).reason;
}

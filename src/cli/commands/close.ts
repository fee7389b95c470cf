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
import { inSession, type Session } from "../session/session.ts";

interface CloseOptions {
  readonly acceptDisagreements?: boolean;
}

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

async function run(session: Session, options: CloseOptions, text: string): Promise<number> {
  const store = await session.migratedStore();
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
  const month = DateTime.fromISO(text, { zone: "utc" });
  if (!/^\d{4}-\d{2}$/.test(text) || !month.isValid) {
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
    next: "Choose a later month.",
  });
}

/** Empty: all listed workspaces. */
function workspacesOf(config: Config, slug: string): readonly string[] {
  return config.sources.find((source) => source.slug === slug)?.workspaceIds ?? [];
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
  const head = ["dimension", "what is open", "days x workspaces", "workspaces", "first", "last"];
  return `${what}: open\n${table(head, rows)}`;
}

function reasonOf(group: readonly OpenDay[]): OpenDay["reason"] {
  return (group[0] as OpenDay).reason;
}

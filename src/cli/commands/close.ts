import type { Command } from "commander";
import { DateTime } from "luxon";
import { UsageError } from "../../errors.ts";
import { workspacesOf as knownOf } from "../../pipeline/backfill/wish.ts";
import { workspacesOf } from "../../store/catalog/workspaces.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { type CloseResult, closeMonth, monthBeforeData } from "../../store/report/month-close.ts";
import { type ListedSource, listSources } from "../../store/report/overview.ts";
import { describeOpen } from "../report/open-days.ts";
import { EXIT, firstExit } from "../session/exit.ts";
import { inSession, type Session } from "../session/session.ts";

interface CloseOptions {
  readonly acceptDisagreements?: boolean;
  readonly without?: readonly string[];
}

export function define(command: Command): void {
  command
    .argument("<month>")
    .option(
      "--without <workspace...>",
      "leave out this workspace: its totals are not in the close",
      (id: string, before: string[] | undefined) => [...(before ?? []), id.toLowerCase()],
    )
    .option(
      "--accept-disagreements",
      "close although the platform contradicts itself on some days; they stay listed",
    )
    .action(inSession(run));
}

async function run(session: Session, options: CloseOptions, text: string): Promise<number> {
  const store = await session.migratedStore();
  const month = parseMonth(text, await storeNow(store.db));
  const sources = await sourcesOf(session, store.db);
  const known = new Map<number, string[]>();
  for (const { sourceId } of sources) {
    const workspaces = await workspacesOf(store.db, sourceId);
    known.set(
      sourceId,
      workspaces.map(({ workspaceId }) => workspaceId),
    );
  }
  const without = options.without === undefined ? [] : knownOf(options.without, [...known.values()].flat());
  const results: Record<string, Closed> = {};
  for (const { sourceId, source } of withinMonth(month, sources, text)) {
    const asked = without.filter((id) => known.get(sourceId)?.includes(id));
    const result = await closeMonth(store, {
      ...{ sourceId, monthStart: month.toISODate(), without: asked },
      settleAfterMs: session.config.settleAfterMs,
      acceptDisagreements: options.acceptDisagreements ?? false,
    });
    results[source] = { ...result, asked };
  }
  session.output.data(
    Object.entries(results).map(([source, { asked: _, ...result }]) => ({ source, ...result })),
    () =>
      Object.entries(results)
        .map(([slug, result]) => {
          const { settleAfterMs, redisUrl } = session.config;
          const hasRedis = redisUrl !== undefined;
          const asked = { month, without: result.asked, settleAfterMs, hasRedis };
          return describeClose(`${slug}, ${text}`, result, asked);
        })
        .join("\n"),
  );
  return firstExit(Object.values(results).map((one) => (isAsAsked(one) ? EXIT.done : EXIT.mismatch)));
}

type Closed = CloseResult & { readonly asked: readonly string[] };

/** Whether the month is closed, and without the workspaces that were asked to be left out, and no others. */
function isAsAsked(result: Closed): boolean {
  return result.state !== "open" && [...result.asked].sort().join() === result.without.join();
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

/** The sources whose data starts before the end of the month. Error: `month_before_data` if there are none. */
function withinMonth(month: DateTime<true>, sources: readonly ListedSource[], text: string) {
  const end = month.plus({ months: 1 }).toISODate();
  const within = sources.filter(({ dataStart }) => dataStart < end);
  if (within.length > 0) return within;
  throw monthBeforeData(text);
}

function describeClose(what: string, result: Closed, asked: Parameters<typeof describeOpen>[2]): string {
  if (result.state === "open") return describeOpen(what, result.open, asked);
  const without = result.without.length === 0 ? "" : `, without ${result.without.join(", ")}`;
  if (result.state === "closed") {
    const accepted = result.accepted === 0 ? "" : `, ${result.accepted} disagreements accepted`;
    return `${what}: closed with ${result.traces.toLocaleString("en-US")} traces in ${result.totals} totals${accepted}${without}`;
  }
  const { adjusted, closedAt } = result;
  const line = `${what}: closed on ${closedAt}${without}; ${adjusted} totals were adjusted since (reporting.usage_month_close)`;
  return isAsAsked(result)
    ? line
    : `${line}\n${what}: a month closes once. Which workspaces are left out cannot be changed now.`;
}

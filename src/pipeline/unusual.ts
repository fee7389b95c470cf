import { addDays, dayOf } from "../domain/time/days.ts";
import type { DayAmount } from "../domain/usage/forecast.ts";
import { UNUSUAL_DAYS, type UnusualDay, unusualDays } from "../domain/usage/unusual.ts";
import type { Database } from "../store/db/database.ts";
import {
  type DayPart,
  partsOfDay,
  usageVersion,
  type WorkspaceDays,
  workspaceDays,
} from "../store/figures/workspace-days.ts";
import { storeNow } from "../store/load/fetch-ledger.ts";

/** A day on which a workspace had far more or far fewer traces than expected. */
export interface UnusualOfWorkspace extends UnusualDay {
  readonly source: string;
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  /** The project, user and key that make up half of the difference or more. */
  readonly because: readonly DayPart[];
}

/** Days that are over and looked at. */
const DAYS = 30;
/** An alert is about days so long ago, since a day is judged when it is final at the latest. */
const ALERT_DAYS = 7;
/** Of an ordinary day of the whole source: a smaller difference is nobody's matter. */
const LEAST_PART = 0.02;
/** Of the difference that something is to explain. */
const LEAST_SHARE = 0.5;
/** Weeks whose same weekday a part is compared with. */
const WEEKS = 8;

let last: { readonly version: string; readonly found: readonly UnusualOfWorkspace[] } | undefined;

/** The unusual days among the last thirty that are over, by day. Read anew only when something was loaded: whoever asks, asks often. */
export async function unusualLately(db: Database): Promise<readonly UnusualOfWorkspace[]> {
  const version = await usageVersion(db);
  if (last?.version !== version) last = { version, found: await findUnusual(db) };
  return last.found;
}

async function findUnusual(db: Database): Promise<UnusualOfWorkspace[]> {
  const to = dayOf(await storeNow(db));
  const from = addDays(to, -DAYS);
  const all = await workspaceDays(db, { from: addDays(from, -UNUSUAL_DAYS), to });
  const found: UnusualOfWorkspace[] = [];
  for (const [source, workspaces] of Map.groupBy(all, ({ source }) => source)) {
    const least = LEAST_PART * ordinaryDay(workspaces, from);
    for (const { id, name, days } of workspaces) {
      for (const one of unusualDays(days)) {
        if (one.day < from || Math.abs(one.amount - one.expected) < least) continue;
        const because = await explain(db, { source, workspaceId: id, days }, one);
        found.push({ ...one, source, workspaceId: id, workspaceName: name, because });
      }
    }
  }
  return found.sort((a, b) => (a.day < b.day ? -1 : 1));
}

/** The mean of the days of all workspaces together. */
function ordinaryDay(workspaces: readonly WorkspaceDays[], from: string): number {
  const days = workspaces.flatMap((one) => one.days).filter(({ day }) => day >= from);
  return days.reduce((sum, { amount }) => sum + (amount ?? 0), 0) / DAYS;
}

async function explain(
  db: Database,
  { source, workspaceId, days }: { source: string; workspaceId: string; days: readonly DayAmount[] },
  { day, amount, expected }: UnusualDay,
): Promise<DayPart[]> {
  const known = new Set(days.filter((one) => one.amount !== null).map((one) => one.day));
  const others = Array.from({ length: WEEKS }, (_, n) => addDays(day, -7 * (n + 1))).filter((one) =>
    known.has(one),
  );
  const sign = Math.sign(amount - expected);
  const parts = await partsOfDay(db, { source, workspaceId, day, others, sign });
  return parts
    .filter(({ more }) => more / (amount - expected) >= LEAST_SHARE)
    .sort((a, b) => BY.indexOf(a.by) - BY.indexOf(b.by));
}

const BY: readonly DayPart["by"][] = ["project", "user", "api_key"];
/** An id that nobody reads is cut. */
const LONGEST_ID = 16;

/** What is unusual about each day. */
export function describedByDay(found: readonly UnusualOfWorkspace[]): Map<string, string> {
  const days = Map.groupBy(found, ({ day }) => day);
  return new Map([...days].map(([day, all]) => [day, all.map(describeUnusual).join(" ")]));
}

/** Of a source, those that an alert is about: of the last week. */
export function ofLastWeek(
  found: readonly UnusualOfWorkspace[],
  source: string,
  now: number,
): UnusualOfWorkspace[] {
  const since = addDays(dayOf(now), -ALERT_DAYS);
  return found.filter((one) => one.source === source && one.day >= since);
}

/** `2026-11-24: 5,210 traces in workspace Support, where about 2,100 were expected. Most of the difference is of project search.` */
export function describeUnusual({ day, amount, expected, isFinal, ...of }: UnusualOfWorkspace): string {
  const { workspaceId, workspaceName, because } = of;
  const named = because.map(({ by, id, name }) => `${by === "api_key" ? "key" : by} ${name ?? cut(id)}`);
  const why = named.length === 0 ? "" : ` Most of the difference is of ${LIST.format(named)}.`;
  return `${day}: ${isFinal ? "" : "at least "}${shown(amount)} traces in workspace ${workspaceName ?? workspaceId}, where about ${shown(expected)} were expected.${why}`;
}

const LIST = new Intl.ListFormat("en-US");

function cut(id: string): string {
  return id.length > LONGEST_ID ? `${id.slice(0, LONGEST_ID / 2)}…` : id;
}

function shown(traces: number): string {
  return Math.round(traces).toLocaleString("en-US");
}

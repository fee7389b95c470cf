import { counted } from "../../core/base/printable.ts";
import { addDays, dayOf } from "../../core/domain/time/days.ts";
import type { DayAmount } from "../../core/domain/usage/forecast.ts";
import {
  differenceOf,
  UNUSUAL_DAYS,
  type UnusualDay,
  unusualSince,
} from "../../core/domain/usage/unusual.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { ownersOfParts } from "../owners/owners.store.ts";
import {
  type DayPart,
  partsOfDays,
  type RequestedDay,
  usageVersion,
  workspaceDays,
} from "./workspace-days.store.ts";

export interface UnusualOfWorkspace extends UnusualDay {
  readonly source: string;
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  readonly because: readonly DayPart[];
  /** The owner of the part that explains most. Null: no owner, or no explanation. */
  readonly owner: string | null;
}

const DAYS = 30;
/** Two weeks, because a day with too little usage is judged only once it is final. */
const ALERT_DAYS = 14;
/** `explained`: newest days whose cause is looked up. `named`: newest days in a message. */
const MOST = { explained: 20, named: 5 };
const LEAST_SHARE = 0.5;
const WEEKS = 8;

let last: { readonly version: string; readonly found: Promise<readonly UnusualOfWorkspace[]> } | undefined;

/**
 * Unusual days among the last thirty ended days, by day. Callers ask often, so they are read only after a load. A name may be
 * older.
 */
export async function unusualLately(db: Database): Promise<readonly UnusualOfWorkspace[]> {
  const version = await usageVersion(db);
  if (last?.version === version) return last.found;
  const found = findUnusual(db);
  last = { version, found };
  return found.catch((error) => {
    if (last?.found === found) last = undefined;
    throw error;
  });
}

async function findUnusual(db: Database): Promise<UnusualOfWorkspace[]> {
  const to = dayOf(await storeNow(db));
  const from = addDays(to, -DAYS);
  const found: (UnusualOfWorkspace & { readonly others: readonly DayAmount[] })[] = [];
  for (const { sourceId, source } of await listSources(db)) {
    const workspaces = await workspaceDays(
      db,
      { sourceId, source },
      { from: addDays(from, -UNUSUAL_DAYS), to },
    );
    for (const { of, unusual, ordinary } of unusualSince(workspaces, from)) {
      for (const one of unusual) {
        found.push({
          ...one,
          source,
          workspaceId: of.id,
          workspaceName: of.name,
          because: [],
          owner: null,
          others: sameWeekdays(ordinary, one.day),
        });
      }
    }
  }
  found.sort((a, b) => Date.parse(b.day) - Date.parse(a.day) || differenceOf(b) - differenceOf(a));
  const parts = await partsOfDays(
    db,
    found.slice(0, MOST.explained).map(({ others, ...one }) => requestedOf(one, others)),
  );
  const explained = found.map(({ others, ...one }, n) => ({
    ...one,
    // Without a day to compare with, the largest part would always seem to be the reason.
    because: others.length === 0 ? [] : because(one, parts[n] ?? []),
  }));
  const owners = await ownersOfParts(
    db,
    explained.flatMap(({ source, workspaceId, day, because }, n) =>
      because.map(({ by, id }) => ({ n, source, workspaceId, day, by, id })),
    ),
  );
  return explained.map((one, n) => ({ ...one, owner: owners.get(n) ?? null })).reverse();
}

function sameWeekdays(days: readonly DayAmount[], day: string): DayAmount[] {
  const wanted = new Set(Array.from({ length: WEEKS }, (_, n) => addDays(day, -7 * (n + 1))));
  return days.filter((one) => one.amount !== null && wanted.has(one.day));
}

/** The expected amount of a part is its mean on the other days, scaled like the amount of its workspace. */
function requestedOf(
  { source, workspaceId, day, amount, expected }: UnusualOfWorkspace,
  others: readonly DayAmount[],
): RequestedDay {
  const sum = others.reduce((all, one) => all + (one.amount ?? 0), 0);
  return {
    source,
    workspaceId,
    day,
    others: others.map((one) => one.day),
    factor: sum === 0 ? 0 : expected / sum,
    sign: Math.sign(amount - expected),
  };
}

function because({ amount, expected }: UnusualOfWorkspace, parts: readonly DayPart[]): readonly DayPart[] {
  return parts.filter(({ more }) => more / (amount - expected) >= LEAST_SHARE);
}

const LONGEST_ID = 16;

export function describedByDay(found: readonly UnusualOfWorkspace[]): Map<string, string> {
  const days = Map.groupBy(found, ({ day }) => day);
  return new Map([...days].map(([day, all]) => [day, describeAll(all)]));
}

export function describeAll(found: readonly UnusualOfWorkspace[]): string {
  const more = found.length - MOST.named;
  const named = found.toReversed().slice(0, MOST.named).map(describeUnusual);
  return [...named, ...(more > 0 ? [`And ${more} more.`] : [])].join(" ");
}

export function ofLastWeeks(
  found: readonly UnusualOfWorkspace[],
  source: string,
  now: number,
): UnusualOfWorkspace[] {
  const since = addDays(dayOf(now), -ALERT_DAYS);
  return found.filter((one) => one.source === source && one.day >= since);
}

export function describeUnusual({ day, amount, expected, isFinal, ...of }: UnusualOfWorkspace): string {
  const { workspaceId, workspaceName, because } = of;
  const named = because.map(({ by, id, name }) => `${by === "api_key" ? "key" : by} ${name ?? cut(id)}`);
  const why = named.length === 0 ? "" : ` Most of the difference is of ${LIST.format(named)}.`;
  return `${day}: ${isFinal ? "" : "at least "}${counted(amount, "trace")} in workspace ${workspaceName ?? workspaceId}, where about ${Math.round(expected).toLocaleString("en-US")} were expected.${why}`;
}

const LIST = new Intl.ListFormat("en-US");

function cut(id: string): string {
  return id.length > LONGEST_ID ? `${id.slice(0, LONGEST_ID / 2)}…` : id;
}

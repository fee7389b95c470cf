import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { ResponseCollector } from "../../domain/usage/response.ts";
import { retryUnverified } from "../catalog/failures.ts";
import { proveAccess } from "../catalog/write-workspaces.ts";
import type { Store } from "../db/database.ts";
import { type Database, queryValues, type Row } from "../db/query.ts";
import { type LostWorkspace, loseAccess } from "./lost-access.ts";

/** How long proof of access lasts (rule 4 of docs/rules.md). */
export const ACCESS_PROVEN_FOR_MS = 600_000;

/**
 * A response over all of time proves access to the workspaces that it names, and ends older proof for the other requested
 * workspaces. The same holds for the statistics of workspaces that no usage ever named (`isStatistics`). Returns the lost
 * workspaces.
 */
export async function noteAccess(
  store: Store,
  response: {
    sourceId: number;
    requested: readonly string[];
    named: readonly string[];
    at: number;
    /** End of the time that the response covers. Default: `at`. */
    until?: number;
    isStatistics?: boolean;
    receivedAt?: number;
  },
): Promise<LostWorkspace[]> {
  const { sourceId, requested, named, at, until = at, isStatistics = false, receivedAt } = response;
  const usedBefore = isStatistics ? null : new Date(until);
  const proven = sql`
    select entity_id from usage.entity
    where source_id = ${sourceId} and dimension = 'workspace' and external_id = any (${named}::text[])
  `;
  await store.statement((db) =>
    proveAccess(db, {
      at,
      receivedAt: whenReceived(receivedAt),
      proven,
      usedBefore: sql`${usedBefore}::timestamptz`,
    }),
  );
  await store.statement((db) => retryUnverified(db, { sourceId, at }));
  const gone = requested.filter((id) => !named.includes(id));
  return loseAccess(store, {
    sourceId,
    workspaceIds: gone,
    at,
    missedBy: isStatistics ? "statistics" : { until },
  });
}

/**
 * Stores the proof of access even if the response is then discarded. It runs before the load, as its own statement: loads of
 * every dimension and stride share these rows, so a host that vanished while it locks them would block all loads
 * (test/integration/service/hosts.test.ts).
 */
export async function noteNamedAccess(
  db: Database,
  {
    meter,
    response,
    scopeIds,
    fetchToken,
    receivedAt,
  }: {
    meter: Meter;
    response: ResponseCollector;
    scopeIds: readonly number[];
    fetchToken: FetchToken;
    receivedAt?: number | undefined;
  },
): Promise<void> {
  const named = [...response.named()].map((index) => scopeIds[index] as number);
  if (named.length === 0) return;
  const proven = sql`select distinct workspace_id from usage.scope where scope_id = any (${named}::integer[])`;
  // A response over all of time counts traces, so it does not name a workspace that has other usage only.
  const hasTraces = METER[meter].kind === METER.traces.kind;
  const usedBefore = hasTraces ? sql<Date>`'infinity'::timestamptz` : sql<Date>`null::timestamptz`;
  await proveAccess(db, {
    at: fetchToken.fetchedAt,
    receivedAt: whenReceived(receivedAt),
    proven,
    usedBefore,
  });
}

/**
 * When the response was received; default: now. Access may have come back only at that moment, so only later requests count.
 */
function whenReceived(receivedAt: number | undefined): RawBuilder<Date> {
  return receivedAt === undefined
    ? sql<Date>`date_trunc('milliseconds', clock_timestamp())`
    : sql<Date>`${new Date(receivedAt)}::timestamptz`;
}

/**
 * Splits scopes by proof of access. `proven`: the response names the scope, or its workspace was readable recently, or since
 * `since` (epoch ms). Proof does not count if access was lost after the request, because an empty response may be due to that.
 */
export async function splitByAccess(
  db: Database,
  task: {
    response: Pick<ResponseCollector, "named">;
    scopeIds: readonly number[];
    fetchToken: FetchToken;
    since?: number | undefined;
  },
): Promise<{ proven: number[]; unverified: number[] }> {
  const { response, scopeIds, fetchToken } = task;
  const named = [...response.named()].map((index) => scopeIds[index] as number);
  if (new Set(named).size === scopeIds.length) return { proven: [...scopeIds], unverified: [] };
  const requestedAt = new Date(task.since ?? fetchToken.fetchedAt);
  const since = new Date(task.since ?? fetchToken.fetchedAt - ACCESS_PROVEN_FOR_MS);
  const readable = await queryValues<Row<"usage.scope">["scopeId"]>(db)`
    select s.scope_id from usage.scope s join usage.workspace w on w.entity_id = s.workspace_id
    where s.scope_id = any (${scopeIds}::integer[]) and w.readable_at >= ${since}
      and (w.readable_since is null or w.readable_since <= ${requestedAt})
  `;
  const proven = new Set([...named, ...readable]);
  return {
    proven: scopeIds.filter((id) => proven.has(id)),
    unverified: scopeIds.filter((id) => !proven.has(id)),
  };
}

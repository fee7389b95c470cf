import { sql } from "kysely";
import { isIfGiven, iso } from "../../core/store/db/expressions.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";

export interface Notification extends Row<"usage.notification", "route" | "kind" | "count" | "newest"> {
  readonly source: string;
  readonly owner: string | null;
  readonly since: number;
  /** ISO instant of the last message. Null: it is unknown whether a message arrived. */
  readonly notifiedAt: string | null;
  /** Null: the incident has not ended. */
  readonly endedAt: string | null;
}

export async function listNotifications(
  db: Database,
  { sourceId, route }: { sourceId?: number; route?: string } = {},
): Promise<Notification[]> {
  return query<Notification>(db)`
    select slug as source, route, kind, nullif(owner, '') as owner, count, newest,
           floor(extract(epoch from since) * 1000)::float8 as since,
           ${iso("notified_at")} as "notifiedAt",
           ${iso("ended_at")} as "endedAt"
    from usage.notification join usage.source using (source_id)
    where ${isIfGiven("source_id", sourceId)}
      and ${isIfGiven("route", route)}
    order by slug, route, kind, owner
  `;
}

/** The right to send to a route of a source. Without it, a process can store nothing about the route. */
export interface Claim {
  readonly sourceId: number;
  readonly route: string;
  readonly claim: string;
}

/**
 * Claims a route for `forMs`. Returns false if another process has the claim or has sent conditions read after `readAt`, or if
 * the route waits after failures.
 */
export async function claimRoute(
  db: Database,
  { sourceId, route, claim, readAt, forMs }: Claim & { readAt: string; forMs: number },
): Promise<boolean> {
  const rows = await query(db)`
    insert into usage.route_state as s (source_id, route, claim, claimed_until, read_at)
    values (${sourceId}, ${route}, ${claim}, now() + make_interval(secs => ${forMs / 1000}), ${readAt})
    on conflict (source_id, route) do update
    set claim = excluded.claim, claimed_until = excluded.claimed_until, read_at = excluded.read_at
    where (s.claimed_until is null or s.claimed_until <= now())
      and (s.read_at is null or s.read_at <= excluded.read_at)
      and (s.next_try_at is null or s.next_try_at <= now())
    returning route
  `;
  return rows.length > 0;
}

/** The first wait is one minute. Each further failure doubles the wait. */
const LONGEST_WAIT_MINUTES = 60;

/**
 * Ends a claim. With a `problem`, the route waits a random part of the time, at least half, so that receivers that failed
 * together are not retried together. A message that arrived ends the wait.
 */
export async function releaseRoute(
  db: Database,
  { sourceId, route, claim, problem, hasArrived }: Claim & { problem: string | null; hasArrived: boolean },
): Promise<void> {
  const failed = {
    problem,
    failures: sql<number>`failures + 1`,
    next_try_at: sql<Date>`now() + interval '1 minute' * least(${LONGEST_WAIT_MINUTES}, 2 ^ least(failures, 30)) * (0.5 + random() / 2)`,
  };
  const arrived = { problem: null, failures: 0, next_try_at: null };
  await db
    .updateTable("usage.route_state")
    .set({ claim: null, claimed_until: null, ...(problem !== null ? failed : hasArrived ? arrived : {}) })
    .where((row) => row.and({ source_id: sourceId, route, claim }))
    .execute();
}

export async function endWaits(db: Database, route?: string): Promise<void> {
  const waiting = db.updateTable("usage.route_state").where("next_try_at", "is not", null);
  await waiting.set({ next_try_at: null }).where(isIfGiven("route", route)).execute();
}

/** Deletes the states of removed routes, and lets all other routes retry at once. */
export async function keepStatesOfRoutes(db: Database): Promise<void> {
  const routes = db.selectFrom("usage.route").select("name");
  const states = db.deleteFrom("usage.route_state").where("route", "<>", "default");
  await states.where("route", "not in", routes).execute();
  await endWaits(db);
}

export interface RouteState extends Row<"usage.route_state", "route" | "failures" | "problem"> {
  readonly source: string;
  /** ISO instant. Null: the route does not wait. */
  readonly nextTryAt: string | null;
}

export async function routeStates(db: Database): Promise<RouteState[]> {
  return query<RouteState>(db)`
    select slug as source, route, failures, problem,
           ${iso("case when next_try_at > now() then next_try_at end")} as "nextTryAt"
    from usage.route_state join usage.source using (source_id) order by slug, route
  `;
}

type Key = Pick<Notification, "kind" | "owner">;

function isHeld({ sourceId, route, claim }: Claim) {
  return sql`exists (select from usage.route_state where source_id = ${sourceId} and route = ${route} and claim = ${claim})`;
}

/** Stored before the first message of an incident is sent: if the process dies, the route is still notified of the end. */
export async function beginNotifications(
  db: Database,
  claim: Claim,
  incidents: readonly Key[],
): Promise<void> {
  await sql`
    insert into usage.notification (source_id, route, kind, owner, count, newest, since)
    select ${claim.sourceId}, ${claim.route}, kind, coalesce(owner, ''), 0, -1, now()
    from jsonb_to_recordset(${JSON.stringify(incidents)}::jsonb) x (kind text, owner text)
    where ${isHeld(claim)}
    on conflict (source_id, route, kind, owner) do update
    set count = excluded.count, newest = excluded.newest, since = excluded.since, notified_at = null, ended_at = null
  `.execute(db);
}

/**
 * Removes incidents whose message certainly did not arrive, so that the route is not notified of an end without a beginning.
 */
export async function removeNotifications(
  db: Database,
  claim: Claim,
  incidents: readonly Key[],
): Promise<void> {
  await sql`
    delete from usage.notification n
    using jsonb_to_recordset(${JSON.stringify(incidents)}::jsonb) x (kind text, owner text)
    where ${isHeld(claim)} and n.source_id = ${claim.sourceId} and n.route = ${claim.route}
      and n.kind = x.kind and n.owner = coalesce(x.owner, '')
  `.execute(db);
}

export async function confirmNotifications(
  db: Database,
  claim: Claim,
  incidents: readonly (Pick<Notification, "kind" | "owner" | "count" | "newest"> & { isFiring: boolean })[],
): Promise<void> {
  await sql`
    update usage.notification n
    set count = x.count, newest = x.newest, notified_at = now(), ended_at = case when not x."isFiring" then now() end
    from jsonb_to_recordset(${JSON.stringify(incidents)}::jsonb)
      x (kind text, owner text, count bigint, newest bigint, "isFiring" boolean)
    where ${isHeld(claim)} and n.source_id = ${claim.sourceId} and n.route = ${claim.route}
      and n.kind = x.kind and n.owner = coalesce(x.owner, '')
  `.execute(db);
}

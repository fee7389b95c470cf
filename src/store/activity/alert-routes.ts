import { sql } from "kysely";
import type { Route } from "../../domain/bill/alert-route.ts";
import { UNALLOCATED } from "../../domain/bill/owner.ts";
import type { Database } from "../db/database.ts";
import type { Claim } from "./alerts.ts";

/** Puts the routes of a file in the place of those that were applied last. One that goes loses what it was told. */
export async function replaceRoutes(db: Database, routes: readonly Route[]): Promise<void> {
  await sql`delete from usage.route`.execute(db);
  await sql`
    insert into usage.route (name, line, type, setting, sender, recipients, owners, kinds, severities)
    select r.name, r.line, r.type, r.setting, r.sender, r.recipients, r.owners, r.kinds, r.severities
    from jsonb_to_recordset(${JSON.stringify(routes)}::jsonb) r (
      name text, line integer, type text, setting text, sender text, recipients text[], owners text[], kinds text[], severities text[]
    )
  `.execute(db);
  await sql`
    delete from usage.route_state where route <> 'default' and route not in (select name from usage.route)
  `.execute(db);
  await tryAtOnce(db);
}

/** Ends the wait after failures: of one route, or of all. */
export async function tryAtOnce(db: Database, route?: string): Promise<void> {
  await sql`
    update usage.route_state set next_try_at = null
    where next_try_at is not null and ${route === undefined ? sql`true` : sql`route = ${route}`}
  `.execute(db);
}

/** Those of the owner file, in its order. */
export async function listRoutes(db: Database): Promise<Route[]> {
  const { rows } = await sql<Route>`
    select line, name, type, setting, sender, recipients, owners, kinds, severities
    from usage.route order by line, name
  `.execute(db);
  return rows;
}

/** A route that names owners to whom no rule gives anything now. */
export interface RouteOfNobody {
  readonly line: number;
  readonly route: string;
  readonly owners: readonly string[];
}

export async function routesOfNobody(db: Database): Promise<RouteOfNobody[]> {
  const { rows } = await sql<RouteOfNobody>`
    with owned as materialized (
      select distinct owner from usage.owned_days where exists (select from usage.route where owners is not null)
    )
    select r.line, r.name as route, array_agg(o order by o) as owners
    from usage.route r cross join unnest(r.owners) o
    where o <> ${UNALLOCATED} and o not in (select owner from owned)
    group by 1, 2 order by 1, 2
  `.execute(db);
  return rows;
}

/** How sending to a route goes, for one source. */
export interface RouteState {
  readonly source: string;
  readonly route: string;
  /** ISO instants; null: never. */
  readonly triedAt: string | null;
  readonly answeredAt: string | null;
  /** Tries since it last answered. */
  readonly failures: number;
  readonly problem: string | null;
  /** Nothing is sent before. Null: it may be sent to now. */
  readonly nextTryAt: string | null;
}

const ISO = sql.lit(`YYYY-MM-DD"T"HH24:MI:SS"Z"`);

export async function routeStates(db: Database): Promise<RouteState[]> {
  const { rows } = await sql<RouteState>`
    select slug as source, route, to_char(tried_at at time zone 'UTC', ${ISO}) as "triedAt",
           to_char(answered_at at time zone 'UTC', ${ISO}) as "answeredAt", failures, problem,
           to_char(case when next_try_at > now() then next_try_at end at time zone 'UTC', ${ISO}) as "nextTryAt"
    from usage.route_state join usage.source using (source_id) order by slug, route
  `.execute(db);
  return rows;
}

/**
 * Takes a route of a source: until `forMs` are over, nobody else sends to it. False: somebody sends now, or has sent what was read
 * after `readAt`, or it waits after failures. A process that died holds it no longer than `forMs`.
 */
export async function claimRoute(
  db: Database,
  { sourceId, route, claim, readAt, forMs }: Claim & { readAt: string; forMs: number },
): Promise<boolean> {
  const until = sql`now() + make_interval(secs => ${forMs / 1000})`;
  const { rows } = await sql`
    insert into usage.route_state as s (source_id, route, claim, claimed_until, read_at, tried_at)
    values (${sourceId}, ${route}, ${claim}, ${until}, ${readAt}, now())
    on conflict (source_id, route) do update
    set claim = excluded.claim, claimed_until = excluded.claimed_until, read_at = excluded.read_at, tried_at = now()
    where (s.claimed_until is null or s.claimed_until <= now()) and (s.read_at is null or s.read_at <= excluded.read_at)
      and (s.next_try_at is null or s.next_try_at <= now())
    returning route
  `.execute(db);
  return rows.length > 0;
}

/** It begins with a minute and doubles with each failure. */
const LONGEST_WAIT_MINUTES = 60;

/**
 * Gives it back, with how it went, if anything was sent. After a failure nobody sends before half of the wait is over, or somewhat later:
 * so receivers that failed together are not tried together. Does nothing where the claim ran out and another one has it.
 */
export async function releaseRoute(
  db: Database,
  { sourceId, route, claim, problem, hasAnswered }: Claim & { problem: string | null; hasAnswered: boolean },
): Promise<void> {
  const went =
    problem !== null
      ? sql`, problem = ${problem}, failures = failures + 1,
          next_try_at = now() + interval '1 minute' * least(${LONGEST_WAIT_MINUTES}, 2 ^ least(failures, 30)) * (0.5 + random() / 2)`
      : hasAnswered
        ? sql`, problem = null, failures = 0, next_try_at = null, answered_at = now()`
        : sql``;
  await sql`
    update usage.route_state set claim = null, claimed_until = null ${went}
    where source_id = ${sourceId} and route = ${route} and claim = ${claim}
  `.execute(db);
}

/** Notes why nothing can be sent to a route. False: that was said less than an hour ago. */
export async function noteUnsendable(
  db: Database,
  { sourceId, route, problem }: { sourceId: number; route: string; problem: string },
): Promise<boolean> {
  const { rows } = await sql`
    insert into usage.route_state as s (source_id, route, tried_at, failures, problem)
    values (${sourceId}, ${route}, now(), 1, ${problem})
    on conflict (source_id, route) do update
    set tried_at = excluded.tried_at, failures = greatest(s.failures, 1), problem = excluded.problem
    where s.problem is distinct from excluded.problem or s.tried_at <= now() - interval '1 hour'
    returning route
  `.execute(db);
  return rows.length > 0;
}

import { sql } from "kysely";
import type { Route } from "../../domain/bill/alert-route.ts";
import { UNALLOCATED } from "../../domain/bill/owner.ts";
import { type Database, query } from "../db/query.ts";
import { keepStatesOfRoutes } from "./notifications.ts";

export async function replaceRoutes(db: Database, routes: readonly Route[]): Promise<void> {
  await sql`delete from usage.route`.execute(db);
  await sql`
    insert into usage.route (name, line, type, setting, sender, recipients, owners, kinds, severities)
    select r.name, r.line, r.type, r.setting, r.sender, r.recipients, r.owners, r.kinds, r.severities
    from jsonb_to_recordset(${JSON.stringify(routes)}::jsonb) r (
      name text, line integer, type text, setting text, sender text, recipients text[], owners text[], kinds text[], severities text[]
    )
  `.execute(db);
  await keepStatesOfRoutes(db);
}

export async function listRoutes(db: Database): Promise<Route[]> {
  return query<Route>(db)`
    select line, name, type, setting, sender, recipients, owners, kinds, severities from usage.route order by line, name
  `;
}

export interface RouteOfNobody {
  readonly line: number;
  readonly route: string;
  readonly owners: readonly string[];
}

export async function routesOfNobody(db: Database): Promise<RouteOfNobody[]> {
  return query<RouteOfNobody>(db)`
    with owned as materialized (
      select distinct owner from usage.owned_days where exists (select from usage.route where owners is not null)
    )
    select r.line, r.name as route, array_agg(o order by o) as owners
    from usage.route r cross join unnest(r.owners) o
    where o <> ${UNALLOCATED} and o not in (select owner from owned)
    group by 1, 2 order by 1, 2
  `;
}

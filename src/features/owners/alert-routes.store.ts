import { type Database, query, type Row } from "../../core/store/db/query.ts";
import type { Route } from "./alert-route.ts";
import { keepStatesOfRoutes } from "./notifications.store.ts";
import { UNALLOCATED } from "./owner.ts";

export async function replaceRoutes(db: Database, routes: readonly Route[]): Promise<void> {
  await db.deleteFrom("usage.route").execute();
  if (routes.length > 0) await db.insertInto("usage.route").values(routes).execute();
  await keepStatesOfRoutes(db);
}

export async function listRoutes(db: Database): Promise<Route[]> {
  return (
    db
      .selectFrom("usage.route")
      .select(["line", "name", "type", "setting", "sender", "recipients", "owners", "kinds", "severities"])
      // Only the reader of the owner file writes kinds and severities.
      .$castTo<Route>()
      .orderBy("line")
      .orderBy("name")
      .execute()
  );
}

export interface RouteOfNobody extends Row<"usage.route", "line"> {
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

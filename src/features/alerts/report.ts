import type { Config } from "../../core/base/config.ts";
import type { Database } from "../../core/store/db/database.ts";
import type { Route } from "../owners/alert-route.ts";
import { listNotifications, type RouteState, routeStates } from "../owners/notifications.store.ts";
import { allRoutes, routeProblem } from "../owners/receiver.ts";
import { conditionSettingsOf, type Incident, idOf, openIncidents } from "./conditions.ts";
import { whyNoMail } from "./deliver.ts";

/** `at` is null if it is unknown whether the message arrived. */
interface Notified {
  readonly route: string;
  readonly at: string | null;
}

export interface OpenIncident extends Incident {
  readonly source: string;
  readonly notified: readonly Notified[];
}

/** The last incident of a kind and owner that routes were notified of, if the incident has ended. */
export interface PastIncident extends Pick<Incident, "kind" | "owner"> {
  readonly source: string;
  readonly notified: readonly Notified[];
}

export interface IncidentReport {
  readonly incidents: readonly OpenIncident[];
  readonly past: readonly PastIncident[];
}

export async function reportIncidents(
  db: Database,
  config: Pick<Config, "sources" | "syncEveryMs">,
): Promise<IncidentReport> {
  const notifications = await listNotifications(db);
  const byIncident = Map.groupBy(
    notifications.filter(({ endedAt }) => endedAt === null),
    ({ source, kind, owner }) => idOf(source, kind, owner),
  );
  const incidents = [...(await openIncidents(db, conditionSettingsOf(config)))].flatMap(([source, own]) =>
    own.map((one) => ({ ...one, source, notified: (byIncident.get(one.incident) ?? []).map(notifiedOf) })),
  );
  // The incident may have ended for one route and begun again for another.
  const open = new Set(incidents.map(({ incident }) => incident));
  const ended = notifications
    .filter(({ source, kind, owner, endedAt }) => endedAt !== null && !open.has(idOf(source, kind, owner)))
    .sort((a, b) => ((a.endedAt ?? "") < (b.endedAt ?? "") ? 1 : -1));
  const past = Map.groupBy(ended, ({ source, kind, owner }) => idOf(source, kind, owner));
  return {
    incidents,
    past: [...past.values()].flatMap((all) => {
      const [last] = all;
      if (last === undefined) return [];
      return { source: last.source, kind: last.kind, owner: last.owner, notified: all.map(notifiedOf) };
    }),
  };
}

function notifiedOf({ route, notifiedAt }: { route: string; notifiedAt: string | null }): Notified {
  return { route, at: notifiedAt };
}

export interface RouteReport extends Route {
  /** Why this process cannot send to the route. Null: it can. */
  readonly missing: string | null;
  /** ISO instant of the last arrival. Null: no message arrived. */
  readonly lastMessage: string | null;
  readonly states: readonly RouteState[];
}

export async function reportRoutes(
  db: Database,
  { routeSecrets }: Pick<Config, "routeSecrets">,
): Promise<RouteReport[]> {
  const routes = await allRoutes(db, routeSecrets);
  const states = await routeStates(db);
  const notifications = await listNotifications(db);
  const mailProblem = routes.some(({ type }) => type === "email") ? await whyNoMail() : undefined;
  return routes.map((route) => ({
    ...route,
    missing: routeProblem(route, routeSecrets) ?? (route.type === "email" ? mailProblem : undefined) ?? null,
    lastMessage:
      notifications
        .flatMap((one) => (one.route === route.name ? (one.notifiedAt ?? []) : []))
        .sort()
        .at(-1) ?? null,
    states: states.filter((one) => one.route === route.name),
  }));
}

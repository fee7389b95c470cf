import type { Config } from "../../config/config.ts";
import type { Route } from "../../domain/bill/alert-route.ts";
import { type RouteState, routeStates } from "../../store/activity/alert-routes.ts";
import { type Told, toldAlerts } from "../../store/activity/alerts.ts";
import type { Database } from "../../store/db/database.ts";
import { conditionSettingsOf, type FiringAlert, firingAlerts } from "./conditions.ts";
import { allRoutes, routeProblem } from "./receiver.ts";

/** A route, and how sending to it goes. */
export interface RouteReport extends Route {
  /** What keeps it from being sent to in this process; null: nothing does. */
  readonly missing: string | null;
  /** By source. */
  readonly states: readonly RouteState[];
}

/** What there is to know, and who was told of it. */
export interface Incident extends FiringAlert {
  readonly source: string;
  /** Routes and ISO instants; null: nobody knows whether it arrived. */
  readonly told: readonly { readonly route: string; readonly at: string | null }[];
}

export interface AlertsReport {
  readonly routes: readonly RouteReport[];
  readonly incidents: readonly Incident[];
  /** What routes were last told, the newest first: beginnings and ends. */
  readonly sent: readonly Told[];
}

export async function reportAlerts(
  db: Database,
  config: Pick<Config, "sources" | "syncEveryMs" | "routeSecrets">,
): Promise<AlertsReport> {
  const { routeSecrets: secrets } = config;
  const routes = await allRoutes(db, secrets);
  const states = await routeStates(db);
  const told = await toldAlerts(db);
  const firing = await firingAlerts(db, conditionSettingsOf(config));
  const ofIncident = (alert: FiringAlert, source: string): Incident => {
    const known = told.filter(
      (one) =>
        one.source === source &&
        one.kind === alert.kind &&
        one.owner === alert.owner &&
        one.clearedAt === null,
    );
    return { ...alert, source, told: known.map(({ route, toldAt }) => ({ route, at: toldAt })) };
  };
  return {
    routes: routes.map((route) => ({
      ...route,
      missing: routeProblem(route, secrets) ?? null,
      states: states.filter((one) => one.route === route.name),
    })),
    incidents: [...firing].flatMap(([source, alerts]) => alerts.map((alert) => ofIncident(alert, source))),
    sent: told
      .filter(({ toldAt }) => toldAt !== null)
      .sort((a, b) => ((a.toldAt ?? "") < (b.toldAt ?? "") ? 1 : -1)),
  };
}

/** What a route takes, but for whose it is: `budget, unusual; only critical`. */
export function describeTaken({ kinds, severities }: Route): string {
  const alerts = kinds === null ? "everything" : kinds.join(", ");
  const only = severities === null || severities.length > 1 ? [] : [`only ${severities[0]}`];
  return [alerts, ...only].join("; ");
}

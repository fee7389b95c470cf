import { z } from "zod";
import { counted } from "../../core/base/printable.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import {
  box,
  button,
  capital,
  columns,
  type Html,
  html,
  instant,
  joined,
  name,
  optional,
  pill,
  prose,
  sourceUnknown,
  table,
  todos,
} from "../../web/parts.ts";
import type { Web } from "../../web/routes.ts";
import { describeTaken } from "../owners/alert-route.ts";
import { factOf, pageOf } from "./conditions.ts";
import {
  type OpenIncident,
  type PastIncident,
  type RouteReport,
  reportIncidents,
  reportRoutes,
} from "./report.ts";

const query = z.object({ source: optional(z.string().max(63)) });

export function addAlerts(web: Web): void {
  web.page("/alerts", { query, oneInstant: true, header: { all: true } }, async (context) => {
    const { db, config } = context;
    const { source } = context.query;
    const sources = (await listSources(db)).map((one) => one.source);
    if (source !== undefined && !sources.includes(source)) throw sourceUnknown(source, sources);
    const report = await reportIncidents(db, config);
    const of = <T extends { readonly source: string }>(all: readonly T[]) =>
      all.filter((one) => source === undefined || one.source === source);
    const [incidents, past] = [of(report.incidents), of(report.past)];
    const word = `${incidents.length.toLocaleString("en-US")} open`;
    const tone = incidents.some(({ severity }) => severity === "critical") ? "bad" : "warn";
    return {
      title: "Alerts",
      ...(incidents.length > 0 && { pill: pill({ mark: "!", word, tone, about: "Open alerts" }) }),
      body: columns(
        box({ title: "Open", body: openOf(incidents, sources.length > 0) }),
        box({ title: "Alert routes", body: routesOf(await reportRoutes(db, config)) }),
        past.length > 0 && box({ title: "Resolved", body: pastOf(past) }),
      ),
    };
  });
}

function openOf(incidents: readonly OpenIncident[], isLoaded: boolean): Html {
  if (!isLoaded) return html`<p>Nothing loaded yet, so nothing is checked.</p>`;
  if (incidents.length === 0) return html`<p>No open alerts.</p>`;
  return todos(
    incidents.map((one) => {
      const to = pageOf(one.kind, one.source);
      const isCritical = one.severity === "critical";
      return {
        tone: isCritical ? ("bad" as const) : ("warn" as const),
        mark: isCritical ? "✕" : "!",
        what: html`${titleOf(one)} · ${one.source}${isCritical && html`<span class="visually-hidden"> (critical)</span>`}`,
        details: html`${prose(factOf(one))}<br>Sent to: ${sentTo(one)}`,
        action: to === undefined ? undefined : button(to, "View"),
      };
    }),
  );
}

function routesOf(routes: readonly RouteReport[]): Html {
  if (routes.length === 0)
    return html`<p>${prose("No alert routes yet. Set USAGE_ALERT_WEBHOOK_URL or add routes to the owner file.")}</p>`;
  return table({
    label: "Alert routes",
    kind: "two",
    caption: "Where alerts are sent",
    heads: ["Route", "Type", "Sends", "Last message", "Problem"],
    rows: routes.map(
      (
        route,
      ) => html`<tr><th scope="row">${name(route.name)}</th><td class="lead">${route.type.replace("_", " ")}</td>
        <td class="share">${describeTaken(route)}${route.owners !== null && html` of ${name(route.owners.join(", "))}`}</td>
        <td class="change">${route.lastMessage === null ? "–" : instant(route.lastMessage)}</td>
        <td class="action">${problemOf(route)}</td></tr>`,
    ),
  });
}

function problemOf({ missing, states }: RouteReport): Html | "" {
  if (missing !== null) return prose(missing);
  const failed = states.find(({ failures }) => failures > 0);
  return failed === undefined
    ? ""
    : prose(`It ${failed.problem} (failed ${counted(failed.failures, "time")}).`);
}

function pastOf(past: readonly PastIncident[]): Html {
  return table({
    label: "Resolved alerts",
    kind: "two",
    caption: "The last of each type",
    heads: ["Type", "Source", "Sent to"],
    rows: past.map(
      (one) =>
        html`<tr><th scope="row">${titleOf(one)}</th><td class="lead">${one.source}</td><td class="share">${sentTo(one)}</td></tr>`,
    ),
  });
}

function titleOf({ kind, owner }: PastIncident): Html {
  const title = kind === "unusual" ? "Unusual days" : capital(kind.replaceAll("_", " "));
  return owner === null ? html`${title}` : html`${title} of ${name(owner)}`;
}

function sentTo({ notified }: PastIncident): Html {
  if (notified.length === 0) return html`nobody`;
  const lines = [...Map.groupBy(notified, ({ at }) => at)].map(([at, routes]) => {
    const names = routes.map(({ route }) => route).join(", ");
    return html`${names} ${at === null ? "(delivery unknown)" : instant(at)}`;
  });
  return joined(lines, "; ");
}

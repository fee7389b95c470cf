import {
  capital,
  card,
  type Html,
  html,
  instant,
  joined,
  name,
  prose,
  sign,
  table,
} from "../../web/parts.ts";
import type { Web } from "../../web/routes.ts";
import { factOf, pageOf } from "./conditions.ts";
import { type IncidentReport, type OpenIncident, type PastIncident, reportIncidents } from "./report.ts";

export function addAlerts(web: Web): void {
  web.page("/alerts", { oneInstant: true, header: { all: true } }, async ({ db, config }) => ({
    title: "Alerts",
    body: shown(await reportIncidents(db, config)),
  }));
}

function shown({ incidents, past }: IncidentReport): Html {
  return html`${incidents.length === 0 ? html`<p>No open incident.</p>` : openTable(incidents)}
    ${past.length > 0 && pastTable(past)}`;
}

function openTable(incidents: readonly OpenIncident[]): Html {
  return table({
    caption: "Open incidents",
    kind: "cards",
    heads: ["Kind", "Source", "Severity", "What", "Notified"],
    rows: incidents.map((one) =>
      card(titleOf(one), [
        ["Source", one.source],
        ["Severity", one.severity === "critical" ? sign("failed", "✕", "critical") : "warning"],
        ["What", html`${prose(factOf(one))}${linkOf(one)}`],
        ["Notified", notifiedOf(one)],
      ]),
    ),
  });
}

function pastTable(past: readonly PastIncident[]): Html {
  return table({
    caption: "Past incidents, the last of each kind",
    kind: "cards",
    heads: ["Kind", "Source", "Ended, by route"],
    rows: past.map((one) =>
      card(titleOf(one), [
        ["Source", one.source],
        ["Ended, by route", notifiedOf(one)],
      ]),
    ),
  });
}

function titleOf({ kind, owner }: PastIncident): Html {
  const title = kind === "unusual" ? "Unusual days" : capital(kind.replaceAll("_", " "));
  return owner === null ? html`${title}` : html`${title} of ${name(owner)}`;
}

function linkOf({ kind, source }: OpenIncident): Html {
  const to = pageOf(kind, source);
  return to === undefined ? html`` : html` <a href="${to}">Show it</a>`;
}

function notifiedOf({ notified }: PastIncident): Html {
  if (notified.length === 0) return html`nobody`;
  const lines = [...Map.groupBy(notified, ({ at }) => at)].map(([at, routes]) => {
    const names = routes.map(({ route }) => route).join(", ");
    return html`${names} ${at === null ? "perhaps" : instant(at)}`;
  });
  return joined(lines, html`<br>`);
}

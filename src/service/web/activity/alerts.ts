import { factOf, pageOf } from "../../../pipeline/alerts/conditions.ts";
import {
  type AlertsReport,
  describeTaken,
  type Incident,
  type RouteReport,
  reportAlerts,
} from "../../../pipeline/alerts/report.ts";
import { counted } from "../../../printable.ts";
import type { Told } from "../../../store/activity/alerts.ts";
import {
  capital,
  card,
  type Html,
  html,
  instant,
  joined,
  name,
  notice,
  prose,
  sign,
  table,
  twin,
} from "../parts.ts";
import type { Web } from "../routes.ts";

/** Who is told: the routes, what is wrong now, and what was sent. */
export function addAlerts(web: Web): void {
  web.page("/alerts", { oneInstant: true }, async ({ db, config }) => ({
    title: "Alerts",
    body: shown(await reportAlerts(db, config)),
  }));
}

function shown({ routes, incidents, sent }: AlertsReport): Html {
  return html`${incidentTable(incidents)}
    <h2>Routes</h2>
    ${
      routes.length === 0
        ? notice(
            "info",
            html`<p>Nobody is told. Set <code>USAGE_ALERT_WEBHOOK_URL</code>, or give the owner file routes.</p>`,
          )
        : routeTable(routes)
    }
    ${sentTable(sent)}
    ${twin(`usage-etl alerts`, ...routes.slice(0, 1).map((one) => `usage-etl alerts test ${one.name}`))}`;
}

function incidentTable(incidents: readonly Incident[]): Html {
  if (incidents.length === 0) return html`<p>Nothing is wrong now.</p>`;
  return table({
    label: "Incidents",
    kind: "cards",
    caption: "What is wrong now, and who was told of it.",
    heads: ["Kind", "Source", "Severity", "What", "Told"],
    rows: incidents.map((one) =>
      card(kindOf(one), [
        ["Source", one.source],
        ["Severity", one.severity === "warning" ? "warning" : severe("critical")],
        ["What", html`${prose(factOf(one))}${pageLink(one)}`],
        ["Told", toldOf(one)],
      ]),
    ),
  });
}

function kindOf({ kind, owner }: Pick<Told, "kind" | "owner">): Html {
  const title = kind === "unusual" ? "Unusual days" : capital(kind.replaceAll("_", " "));
  return owner === null ? html`${title}` : html`${title} of ${name(owner)}`;
}

function severe(text: string): Html {
  return sign("failed", "✕", text);
}

function pageLink({ kind, source }: Incident): Html {
  const to = pageOf(kind, source);
  return to === undefined ? html`` : html` <a href="${to}">Show it</a>`;
}

function toldOf({ told }: Incident): Html {
  if (told.length === 0) return html`nobody`;
  const together = Map.groupBy(told, ({ at }) => at);
  const all = [...together].map(([at, some]) => {
    const routes = some.map(({ route }) => route).join(", ");
    return html`${routes} ${at === null ? "perhaps" : instant(at)}`;
  });
  return joined(all, html`<br>`);
}

function routeTable(routes: readonly RouteReport[]): Html {
  return table({
    label: "Routes",
    kind: "cards",
    caption: "Who is told what, and whether the last message arrived.",
    heads: ["Route", "Type", "Takes", "Last answer", "State"],
    rows: routes.map((one) => {
      const last = one.states
        .flatMap(({ answeredAt }) => answeredAt ?? [])
        .sort()
        .at(-1);
      return card(html`${one.name}`, [
        ["Type", one.type],
        ["Takes", takenOf(one)],
        ["Last answer", last === undefined ? "none yet" : instant(last)],
        ["State", stateOf(one)],
      ]);
    }),
  });
}

function takenOf(route: RouteReport): Html {
  const { owners } = route;
  return html`${describeTaken(route)}${owners === null || owners.length === 0 ? "" : html`; of ${joined(owners.map(name))}`}`;
}

function stateOf({ missing, states }: RouteReport): Html {
  if (missing !== null) return html`${severe("no receiver")}: ${missing}`;
  const failed = states.find(({ failures }) => failures > 0);
  if (failed !== undefined) {
    const next = failed.nextTryAt === null ? html`within a minute` : html`at ${instant(failed.nextTryAt)}`;
    return html`${severe("failed")} ${counted(failed.failures, "time")}: it ${failed.problem}. It is tried again ${next}.`;
  }
  if (states.every(({ answeredAt }) => answeredAt === null)) return html`nothing was sent yet`;
  return sign("ok", "●", "arrived");
}

/** What is wrong now stands above with who was told. */
function sentTable(sent: readonly Told[]): Html {
  const before = sent.filter(({ clearedAt }) => clearedAt !== null);
  if (before.length === 0) return html``;
  return html`<h2>Sent before</h2>${table({
    label: "Sent before",
    kind: "cards",
    caption: "What was last sent of each kind and is over, the newest first.",
    heads: ["What", "Source", "Route", "At"],
    rows: before.map((one) =>
      card(kindOf(one), [
        ["Source", one.source],
        ["Route", one.route],
        ["At", instant(one.toldAt ?? "")],
      ]),
    ),
  })}`;
}

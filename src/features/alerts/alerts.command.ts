import type { Command } from "commander";
import { systemClock } from "../../core/base/clock.ts";
import { UsageError } from "../../core/base/errors.ts";
import { counted } from "../../core/base/printable.ts";
import { instant, linesOf, tableOf } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { describeTaken } from "../owners/alert-route.ts";
import { endWaits } from "../owners/notifications.store.ts";
import { allRoutes, receiverOf } from "../owners/receiver.ts";
import { deliver } from "./deliver.ts";
import { testMessage } from "./message.ts";
import { type OpenIncident, type RouteReport, reportIncidents, reportRoutes } from "./report.ts";

export const examples = [
  ["alerts", "routes, open incidents, and which routes were notified"],
  ["alerts test oncall", "send one message that says it is a test"],
] as const;

export function define(alerts: Command): void {
  alerts
    .command("list", { isDefault: true })
    .description("show the routes, the open incidents, and who was notified")
    .action(inSession(list));
  alerts
    .command("test <route>")
    .description("send a test message, and show the receiver's response")
    .action(inSession(test));
}

async function list({ output, config, ...session }: Session): Promise<undefined> {
  const { db } = await session.migratedStore();
  const report = { routes: await reportRoutes(db, config), ...(await reportIncidents(db, config)) };
  output.data(report, ({ routes, incidents }) =>
    linesOf(
      routes.length === 0
        ? "No route is set, so nobody is notified. Set USAGE_ALERT_WEBHOOK_URL, or give an owner file routes: see docs/owners.md."
        : tableOf(routes, {
            route: "name",
            type: "type",
            takes: describeTaken,
            of:
              routes.some(({ owners }) => owners !== null) &&
              (({ owners }) => owners?.join(", ") ?? "everybody"),
            "last message": ({ lastMessage }) => (lastMessage === null ? "-" : instant(lastMessage)),
            problem: problemOf,
          }),
      "",
      incidents.length === 0
        ? "No open incident."
        : linesOf(`${counted(incidents.length, "open incident")}:`, incidents.map(describeIncident)),
    ),
  );
}

function problemOf({ missing, states }: RouteReport): string {
  if (missing !== null) return missing;
  const failed = states.find(({ failures }) => failures > 0);
  if (failed === undefined) return "";
  const next = failed.nextTryAt === null ? "within a minute" : `at ${instant(failed.nextTryAt)}`;
  return `failed ${counted(failed.failures, "time")}: it ${failed.problem}; tried again ${next}`;
}

function describeIncident({ source, message, kind, notified }: OpenIncident): string {
  const routes = notified.map(({ route, at }) => `${route} ${at === null ? "(perhaps)" : instant(at)}`);
  return `  ${source}: ${message} [${kind}] ${routes.length === 0 ? "Nobody was notified." : `Notified: ${routes.join(", ")}.`}`;
}

/** Longer than in the service, because a person waits. */
const WITHIN_MS = 20_000;

async function test(
  { output, config, signal, ...session }: Session,
  _: object,
  name = "",
): Promise<undefined> {
  const { db } = await session.migratedStore();
  const routes = await allRoutes(db, config.routeSecrets);
  const route = routes.find((one) => one.name === name);
  if (route === undefined)
    throw new UsageError({
      code: "route_unknown",
      message: `There is no route ${JSON.stringify(name)}.`,
      next:
        routes.length === 0
          ? "Set USAGE_ALERT_WEBHOOK_URL, or give an owner file routes: see docs/owners.md."
          : `Choose one of these: ${routes.map((one) => one.name).join(", ")}.`,
    });
  const now = systemClock.now();
  const receiver = receiverOf(route, config.routeSecrets);
  const send = (state: "firing" | "cleared") =>
    deliver(testMessage(name, state, now), {
      route,
      receiver,
      signal,
      clock: systemClock,
      webUrl: config.webUrl,
      withinMs: WITHIN_MS,
      deadline: AbortSignal.timeout(WITHIN_MS),
    });
  const response = await send("firing");
  await endWaits(db, name);
  // PagerDuty would keep the test incident open.
  if (route.type === "pagerduty") await send("cleared");
  output.data({ route: name, type: route.type, response }, () =>
    linesOf(
      `Route ${name} (${route.type}) took the test message: it ${response}.`,
      route.type === "pagerduty" && "The incident that it opened was resolved again.",
    ),
  );
}

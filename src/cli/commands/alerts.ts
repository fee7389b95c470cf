import type { Command } from "commander";
import { systemClock } from "../../clock.ts";
import type { Config } from "../../config/config.ts";
import type { Route } from "../../domain/bill/alert-route.ts";
import { UsageError } from "../../errors.ts";
import { deliver } from "../../pipeline/alerts/deliver.ts";
import { type Message, testMessage } from "../../pipeline/alerts/message.ts";
import { allRoutes, receiverOf } from "../../pipeline/alerts/receiver.ts";
import {
  describeTaken,
  type Incident,
  type RouteReport,
  reportAlerts,
} from "../../pipeline/alerts/report.ts";
import { counted } from "../../printable.ts";
import { tryAtOnce } from "../../store/activity/alert-routes.ts";
import type { Database } from "../../store/db/database.ts";
import { instant, linesOf, tableOf } from "../report/output.ts";
import { inSession, type Session } from "../session/session.ts";

export const examples = [
  ["alerts", "routes, what is wrong now, and who was told"],
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
  const report = await reportAlerts(db, config);
  output.data(report, ({ routes, incidents }) =>
    linesOf(
      routes.length === 0
        ? "No route is set, so nobody is told. Set USAGE_ALERT_WEBHOOK_URL, or give an owner file routes: see docs/owners.md."
        : tableOf(routes, {
            route: "name",
            type: "type",
            takes: describeTaken,
            of:
              routes.some(({ owners }) => owners !== null) &&
              (({ owners }) => owners?.join(", ") ?? "everybody"),
            "last answer": lastAnswer,
            problem: problemOf,
          }),
      "",
      incidents.length === 0
        ? "Nothing is wrong now."
        : linesOf(
            `${counted(incidents.length, "incident")} now:`,
            incidents.map((one) => `  ${one.source}: ${one.message} [${one.kind}] ${describeTold(one)}`),
          ),
    ),
  );
}

function lastAnswer({ states }: RouteReport): string {
  const at = states
    .flatMap(({ answeredAt }) => answeredAt ?? [])
    .sort()
    .at(-1);
  return at === undefined ? "-" : instant(at);
}

/** What keeps a route from being sent to, or why its last message did not arrive. */
function problemOf({ missing, states }: RouteReport): string {
  const failed = states.find(({ failures }) => failures > 0);
  if (missing !== null) return missing;
  if (failed === undefined) return "";
  const next = failed.nextTryAt === null ? "within a minute" : `at ${instant(failed.nextTryAt)}`;
  return `failed ${counted(failed.failures, "time")}: it ${failed.problem}; tried again ${next}`;
}

function describeTold({ told }: Incident): string {
  const names = told.map(({ route, at }) => `${route}${at === null ? " (perhaps)" : ` ${instant(at)}`}`);
  return told.length > 0 ? `Told: ${names.join(", ")}.` : "Nobody was told.";
}

/** Longer than the service waits: somebody looks. */
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
  const send = (state: "firing" | "cleared") =>
    sendNow(db, route, testMessage(name, state, now), { config, signal });
  const answer = await send("firing");
  // It would stay open there.
  if (route.type === "pagerduty") await send("cleared");
  output.data({ route: name, type: route.type, answer }, () =>
    linesOf(
      `Route ${name} (${route.type}) took the test message: it ${answer}.`,
      route.type === "pagerduty" && "The incident that it opened was resolved again.",
    ),
  );
}

/** What waits for a route that failed need not wait on once it has taken something. */
async function sendNow(
  db: Database,
  route: Route,
  message: Message,
  { config, signal }: { config: Config; signal: AbortSignal },
): Promise<string> {
  const answer = await deliver(message, {
    route,
    receiver: receiverOf(route, config.routeSecrets),
    signal,
    clock: systemClock,
    withinMs: WITHIN_MS,
    deadline: AbortSignal.timeout(WITHIN_MS),
  });
  await tryAtOnce(db, route.name);
  return answer;
}

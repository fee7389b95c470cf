import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../core/base/clock.ts";
import { EtlError } from "../../core/base/errors.ts";
import type { Secret } from "../../core/base/secret.ts";
import type { CreatedSource } from "../../core/pipeline/source/source.ts";
import { type Route, takes } from "../owners/alert-route.ts";
import {
  beginNotifications,
  type Claim,
  claimRoute,
  confirmNotifications,
  listNotifications,
  type Notification,
  releaseRoute,
  removeNotifications,
} from "../owners/notifications.store.ts";
import { allRoutes, DeliveryError, receiverOf, type Sending } from "../owners/receiver.ts";
import { type Condition, type ConditionSettings, readConditions } from "./conditions.ts";
import { deliver } from "./deliver.ts";
import { alertOf, messageOf } from "./message.ts";

export interface SendSettings {
  readonly slug: string;
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly webUrl?: string | undefined;
  /** Limit for all messages of one pass to a route. Default: 10 s; 30 s for mail, which servers may scan first. */
  readonly withinMs?: number;
  readonly clock?: Pick<Clock, "wait">;
  readonly signal?: AbortSignal | undefined;
}

export type AlertSettings = SendSettings & ConditionSettings;

/** Time until others may send to the routes of a dead process. Sending is much faster. */
const CLAIM_MS = 60_000;

export interface Counts {
  readonly notified: number;
  readonly ended: number;
}

/**
 * Sends each route one message about incidents that began, grew or ended since its last one. A failed route waits longer each
 * time and delays no other. Error: `route_failed`, which names all failed routes.
 */
export async function sendAlerts(source: CreatedSource, settings: AlertSettings): Promise<Counts> {
  const { db } = source.store;
  const { sourceId } = source;
  const routes = await allRoutes(db, settings.secrets);
  if (routes.length === 0) return { notified: 0, ended: 0 };
  const open = (await listNotifications(db, { sourceId })).filter(({ endedAt }) => endedAt === null);
  const { firstSource, staleAfterMs } = settings;
  const { sources, failure } = await readConditions(db, { sourceId, open, firstSource, staleAfterMs });
  const [read] = sources;
  if (read === undefined) return { notified: 0, ended: 0 };
  return notifyRoutes(source, { ...read, routes, failure }, settings);
}

interface ToSend {
  readonly routes: readonly Route[];
  readonly conditions: readonly Condition[];
  /** When conditions were read, by Postgres's clock. */
  readonly readAt: string;
  /** Why some conditions could not be read. Thrown after the others were sent. */
  readonly failure?: unknown;
}

export async function notifyRoutes(
  source: CreatedSource,
  { routes, failure, ...read }: ToSend,
  settings: SendSettings,
): Promise<Counts> {
  const notifications = await listNotifications(source.store.db, { sourceId: source.sourceId });
  const due = routes.filter((route) => changesFor(route, read.conditions, notifications).length > 0);
  const results = await Promise.allSettled(due.map((route) => notifyRoute(source, route, read, settings)));
  const failures = results.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failure !== undefined) failures.unshift(failure);
  if (failures.length > 0) throw oneError(failures);
  const counts = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  return {
    notified: counts.reduce((sum, { notified }) => sum + notified, 0),
    ended: counts.reduce((sum, { ended }) => sum + ended, 0),
  };
}

/** A log line has one error, so this one names all routes. Its cause is the first error that is not a `DeliveryError`. */
function oneError(failures: readonly unknown[]): unknown {
  const others = failures.filter((one) => !(one instanceof DeliveryError));
  if (failures.length === 1 || others.length === failures.length) return failures[0];
  return new EtlError({
    code: "route_failed",
    message: failures.map((one) => (one as Error).message).join(" "),
    next: "Check their settings with the owners of the receivers: `usage-etl alerts` shows when each is tried again.",
    retryable: true,
    cause: others[0],
  });
}

async function notifyRoute(
  { store: { db }, sourceId }: CreatedSource,
  route: Route,
  { conditions, readAt }: Pick<ToSend, "conditions" | "readAt">,
  settings: SendSettings,
): Promise<Counts> {
  const { withinMs = route.type === "email" ? 30_000 : 10_000, clock = systemClock, signal } = settings;
  const claim: Claim = { sourceId, route: route.name, claim: randomUUID() };
  // The route waits after a failure, or another process sends these changes.
  if (!(await claimRoute(db, { ...claim, readAt, forMs: withinMs + CLAIM_MS })))
    return { notified: 0, ended: 0 };
  try {
    const receiver = receiverOf(route, settings.secrets);
    const { webUrl } = settings;
    const deadline = AbortSignal.timeout(withinMs);
    const sending = { route, receiver, withinMs, deadline, clock, signal, webUrl };
    // Read again, because no other process changes notifications under the claim.
    const changes = changesFor(route, conditions, await listNotifications(db, claim));
    const batches = receiver.type === "pagerduty" ? changes.map((one) => [one]) : [changes];
    for (const batch of batches) if (batch.length > 0) await send(db, claim, batch, sending, settings);
    await releaseRoute(db, { ...claim, problem: null, hasArrived: changes.length > 0 });
    const ended = changes.filter(({ condition }) => !condition.isFiring).length;
    return { notified: changes.length - ended, ended };
  } catch (error) {
    const problem = error instanceof DeliveryError ? error.problem : null;
    await releaseRoute(db, { ...claim, problem, hasArrived: false });
    throw error;
  }
}

interface Change {
  readonly condition: Condition;
  readonly open: Notification | undefined;
}

async function send(
  db: CreatedSource["store"]["db"],
  claim: Claim,
  changes: readonly Change[],
  sending: Sending,
  { slug, webUrl }: SendSettings,
): Promise<void> {
  const begun = changes.filter(({ open }) => open === undefined).map(({ condition }) => condition);
  await beginNotifications(db, claim, begun);
  const notifications = await listNotifications(db, claim);
  const alerts = changes.map(({ condition }) => {
    const since = openOf(condition, notifications)?.since ?? 0;
    return alertOf(condition, { source: slug, since, webUrl });
  });
  try {
    await deliver(messageOf(slug, alerts), sending);
  } catch (error) {
    // If the message may have arrived, the route must be notified of the end too.
    if (error instanceof DeliveryError && error.isCertain) await removeNotifications(db, claim, begun);
    throw error;
  }
  await confirmNotifications(
    db,
    claim,
    changes.map(({ condition }) => condition),
  );
}

/** A notified route is also notified of the end, even if its filter has changed. */
function changesFor(
  route: Route,
  conditions: readonly Condition[],
  notifications: readonly Notification[],
): Change[] {
  const own = notifications.filter((one) => one.route === route.name);
  return conditions
    .map((condition) => ({ condition, open: openOf(condition, own) }))
    .filter(({ condition, open }) => {
      const { isFiring, isHeld = false, count, newest } = condition;
      if (!isFiring) return open !== undefined && (!isHeld || newest > open.newest);
      if (!takes(route, condition)) return false;
      return open === undefined || open.notifiedAt === null || count > open.count || newest > open.newest;
    });
}

function openOf(
  { kind, owner }: Pick<Condition, "kind" | "owner">,
  notifications: readonly Notification[],
): Notification | undefined {
  return notifications.find((one) => one.endedAt === null && one.kind === kind && one.owner === owner);
}

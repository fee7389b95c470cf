import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../clock.ts";
import type { Secret } from "../../config/secret.ts";
import type { Route, RouteType } from "../../domain/bill/alert-route.ts";
import { EtlError } from "../../errors.ts";
import { claimRoute, noteUnsendable, releaseRoute } from "../../store/activity/alert-routes.ts";
import {
  type Claim,
  noteRefused,
  noteSending,
  noteTold,
  type Told,
  toldAlerts,
} from "../../store/activity/alerts.ts";
import type { EnteredSource } from "../source/source.ts";
import { type Condition, type ConditionSettings, currentConditions } from "./conditions.ts";
import { deliver } from "./deliver.ts";
import { alertOf, messageOf } from "./message.ts";
import { allRoutes, DeliveryError, type Receiver, receiverOf, type Sending } from "./receiver.ts";

/** How routes are sent to. */
export interface RouteSettings {
  /** By the settings that routes name. None: nothing is sent. */
  readonly secrets: ReadonlyMap<string, Secret>;
  /** Where people reach the pages. */
  readonly webUrl?: string | undefined;
  /** For all messages of a pass to one route, with their answers. Default: 10 s; 30 s for mail, which a server may look through first. */
  readonly withinMs?: number;
  readonly clock?: Pick<Clock, "wait">;
  /** Ends a message that is under way. */
  readonly signal?: AbortSignal | undefined;
}

export interface AlertSettings extends RouteSettings, ConditionSettings {
  readonly slug: string;
}

const WITHIN_MS = { webhook: 10_000, slack: 10_000, pagerduty: 10_000, email: 30_000 } satisfies Record<
  RouteType,
  number
>;
/** A process that sends and dies keeps a route so long from others: much longer than it may take. */
const CLAIM_MS = 60_000;

/** Incidents that routes were told, each once for each of them. */
export interface Counts {
  readonly told: number;
  readonly cleared: number;
}

/**
 * Sends each route one message with the incidents that it takes and that began, grew or ended since its last one, if any. What it does
 * not take (a refusal, an error, no answer) is sent again after a wait that grows with its failures. One that fails holds up no other.
 *
 * Errors: `route_failed`, which names all that failed.
 */
export async function raiseAlerts(
  { store, sourceId }: EnteredSource,
  settings: AlertSettings,
): Promise<Counts> {
  const routes = await allRoutes(store.db, settings.secrets);
  if (routes.length === 0) return { told: 0, cleared: 0 };
  const told = await toldAlerts(store.db, { sourceId });
  const read = await currentConditions(store.db, {
    sourceId,
    told: told.filter(isOpen),
    firstSource: settings.firstSource,
    staleAfterMs: settings.staleAfterMs,
  });
  return tellRoutes({ store, sourceId }, { ...read, routes, told }, settings);
}

interface ToTell {
  readonly routes: readonly Route[];
  readonly conditions: readonly Condition[];
  /** When they were read, by Postgres's clock. */
  readonly readAt: string;
  /** What routes were told before. */
  readonly told: readonly Told[];
  /** Why some of it could not be read. It is thrown after what could be told. */
  readonly failure?: unknown;
}

/** The same of given incidents. */
export async function tellRoutes(
  source: EnteredSource,
  { routes, told, failure, ...read }: ToTell,
  settings: RouteSettings & { readonly slug: string },
): Promise<Counts> {
  const news = routes.filter((route) => changesFor(route, read, told).length > 0);
  const ended = await Promise.allSettled(news.map((route) => tellRoute(source, route, read, settings)));
  const failures: unknown[] = failure === undefined ? [] : [failure];
  const sum = { told: 0, cleared: 0 };
  for (const one of ended) {
    if (one.status === "rejected") failures.push(one.reason);
    else {
      sum.told += one.value.told;
      sum.cleared += one.value.cleared;
      if (one.value.failure !== undefined) failures.push(one.value.failure);
    }
  }
  if (failures.length === 0) return sum;
  throw asOne(failures);
}

/** Names all of them: a log line has one error. What is no fault of a receiver is its cause. */
function asOne(failures: readonly unknown[]): unknown {
  const others = failures.filter((one) => !(one instanceof DeliveryError));
  if (failures.length === 1 || others.length === failures.length) return failures[0];
  return new EtlError({
    code: "route_failed",
    message: failures.map((one) => (one as Error).message).join(" "),
    next: "Check their settings with whoever owns the receivers: `usage-etl alerts` says when each is tried again.",
    retryable: true,
    cause: others[0],
  });
}

type Outcome = Counts & { readonly failure?: DeliveryError };

async function tellRoute(
  { store, sourceId }: EnteredSource,
  route: Route,
  read: Omit<ToTell, "routes" | "told">,
  settings: RouteSettings & { readonly slug: string },
): Promise<Outcome> {
  const { withinMs = WITHIN_MS[route.type], clock = systemClock, secrets, signal } = settings;
  let receiver: Receiver;
  try {
    receiver = receiverOf(route, secrets);
  } catch (error) {
    if (!(error instanceof DeliveryError)) throw error;
    const { problem } = error;
    const isNews = await noteUnsendable(store.db, { sourceId, route: route.name, problem });
    return { told: 0, cleared: 0, ...(isNews ? { failure: error } : {}) };
  }
  const claim: Claim = { sourceId, route: route.name, claim: randomUUID() };
  // Somebody else sends now, and sends this too.
  if (!(await claimRoute(store.db, { ...claim, readAt: read.readAt, forMs: withinMs + CLAIM_MS })))
    return { told: 0, cleared: 0 };
  // From here on nobody else changes what it was told.
  const told = await toldAlerts(store.db, claim);
  const changes = changesFor(route, read, told);
  const sum = { told: 0, cleared: 0 };
  let failure: DeliveryError | undefined;
  try {
    const deadline = AbortSignal.timeout(withinMs);
    const sending = { route, receiver, withinMs, deadline, clock, signal };
    // An event of PagerDuty is about one incident.
    const batches = receiver.type === "pagerduty" ? changes.map((one) => [one]) : [changes];
    for (const batch of batches) {
      if (batch.length > 0) await tellBatch(store, claim, batch, { sending, settings });
      for (const { condition } of batch) sum[condition.isFiring ? "told" : "cleared"]++;
    }
  } catch (error) {
    // Whoever comes next need not wait until the claim runs out.
    if (!(error instanceof DeliveryError)) {
      await releaseRoute(store.db, { ...claim, problem: null, hasAnswered: false });
      throw error;
    }
    failure = error;
  }
  const hasAnswered = failure === undefined && sum.told + sum.cleared > 0;
  await releaseRoute(store.db, { ...claim, problem: failure?.problem ?? null, hasAnswered });
  return failure === undefined ? sum : { ...sum, failure };
}

/** What to tell, and what of it was told before. */
interface Change {
  readonly condition: Condition;
  readonly told: Told | undefined;
}

async function tellBatch(
  { db }: EnteredSource["store"],
  claim: Claim,
  changes: readonly Change[],
  { sending, settings }: { sending: Sending; settings: RouteSettings & { readonly slug: string } },
): Promise<void> {
  const begun = changes.map(({ condition }) => condition).filter(({ isFiring }) => isFiring);
  const times = await noteSending(db, claim, begun);
  const sinceOf = ({ condition, told }: Change) =>
    times.find(({ kind, owner }) => kind === condition.kind && owner === condition.owner)?.since ??
    told?.since ??
    0;
  const alerts = changes.map((change) =>
    alertOf(change.condition, { source: settings.slug, since: sinceOf(change), webUrl: settings.webUrl }),
  );
  try {
    await deliver(messageOf(settings.slug, alerts), sending);
  } catch (error) {
    // An earlier try, whose process died, may have arrived.
    const isFirst = ({ condition, told }: Change) =>
      condition.isFiring && (told === undefined || !isOpen(told));
    if (error instanceof DeliveryError && error.isCertain)
      await noteRefused(
        db,
        claim,
        changes.filter(isFirst).map(({ condition }) => condition),
      );
    throw error;
  }
  const arrived = changes.map(({ condition: { kind, owner, count, newest, isFiring } }) => {
    return { kind, owner, told: count, newest, isOver: !isFiring };
  });
  await noteTold(db, claim, arrived);
}

function isOpen({ clearedAt }: Told): boolean {
  return clearedAt === null;
}

/**
 * What a route takes and was not told. Whoever was told of an incident is told of its end, even if the route takes it no more.
 */
function changesFor(
  route: Route,
  { conditions }: Pick<ToTell, "conditions">,
  told: readonly Told[],
): Change[] {
  return conditions.flatMap((condition): Change[] => {
    const { kind, owner, isFiring, isHeld = false, count, newest } = condition;
    const before = told.find((one) => one.route === route.name && one.kind === kind && one.owner === owner);
    const open = before !== undefined && isOpen(before) ? before : undefined;
    const isNews = isFiring
      ? takes(route, condition) &&
        (open === undefined || open.toldAt === null || count > open.told || newest > open.newest)
      : open !== undefined && (!isHeld || newest > open.newest);
    return isNews ? [{ condition, told: before }] : [];
  });
}

export function takes(
  { owners, kinds, severities }: Route,
  { kind, owner, severity }: Pick<Condition, "kind" | "owner" | "severity">,
): boolean {
  return (
    (owners === null || (owner !== null && owners.includes(owner))) &&
    (kinds === null || kinds.includes(kind)) &&
    (severities === null || severities.includes(severity))
  );
}

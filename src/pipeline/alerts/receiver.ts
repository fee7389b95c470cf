import type { Clock } from "../../clock.ts";
import type { Secret } from "../../config/secret.ts";
import { DEFAULT_ROUTE, type Route } from "../../domain/bill/alert-route.ts";
import { UnreachableError } from "../../errors.ts";
import { listRoutes } from "../../store/activity/alert-routes.ts";
import type { Database } from "../../store/db/database.ts";

/** Where a message goes. What is secret in it is in no error. */
export type Receiver =
  | { readonly type: "webhook"; readonly url: string }
  | { readonly type: "slack"; readonly url: string }
  | { readonly type: "pagerduty"; readonly url: string; readonly key: string }
  | {
      readonly type: "email";
      readonly server: URL;
      /** Undefined: it asks for none. */
      readonly login: { readonly user: string; readonly pass: string } | undefined;
      readonly from: string;
      readonly to: readonly string[];
    };

const PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue";

/** All routes: that of USAGE_ALERT_WEBHOOK_URL, where it is set, then those of the owner file. */
export async function allRoutes(
  db: Database,
  secrets: ReadonlyMap<string, Secret>,
): Promise<readonly Route[]> {
  const own = await listRoutes(db);
  return secrets.has(DEFAULT_ROUTE.setting) ? [DEFAULT_ROUTE, ...own] : own;
}

/** What keeps a route from being sent to in this process; undefined: nothing does. */
export function routeProblem(route: Route, secrets: ReadonlyMap<string, Secret>): string | undefined {
  try {
    receiverOf(route, secrets);
    return undefined;
  } catch (error) {
    return (error as DeliveryError).problem;
  }
}

/** A secret that comes from a file is read anew. Error: `route_failed`. */
export function receiverOf(route: Route, secrets: ReadonlyMap<string, Secret>): Receiver {
  const { type, setting, sender, recipients } = route;
  const refuse = (problem: string) =>
    new DeliveryError({ route, problem, isCertain: true, retryable: false });
  const value = secrets.get(setting)?.reveal();
  if (value === undefined) throw refuse(`${setting} is not set here`);
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  if (type === "email") {
    const isMail = url?.protocol === "smtps:" || url?.protocol === "smtp:";
    if (!isMail || url.hostname === "")
      throw refuse(`${setting} is not of the form smtps://user:password@host`);
    const user = decoded(url.username);
    const pass = decoded(url.password);
    if (user === undefined || pass === undefined)
      throw refuse(`${setting} has a % in its login that is not written %25`);
    const login = user === "" ? undefined : { user, pass };
    return { type, server: url, login, from: sender ?? "", to: recipients };
  }
  if (type === "pagerduty") {
    const key = isWeb ? url.username : value;
    if (!/^[\w-]{8,64}$/.test(key))
      throw refuse(`${setting} is not an integration key, nor https://KEY@host/path`);
    if (!isWeb) return { type, url: PAGERDUTY_URL, key };
    url.username = "";
    return { type, url: url.href, key };
  }
  if (!isWeb) throw refuse(`${setting} is not of the form https://host/path`);
  return { type, url: url.href };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

interface DeliveryFacts {
  readonly route: Pick<Route, "name" | "setting">;
  /** The end of a sentence about the route. */
  readonly problem: string;
  /** Whether it certainly did not arrive. */
  readonly isCertain: boolean;
  readonly retryable: boolean;
}

/** A message did not arrive, or nobody knows. */
export class DeliveryError extends UnreachableError {
  readonly problem: DeliveryFacts["problem"];
  readonly isCertain: DeliveryFacts["isCertain"];

  constructor({ route, problem, isCertain, retryable }: DeliveryFacts) {
    super({
      code: "route_failed",
      message: `Route ${route.name} ${problem.startsWith(route.setting) ? "has no receiver: " : ""}${problem}.`,
      next: `Check ${route.setting} with whoever owns the receiver: \`usage-etl alerts test ${route.name}\`.`,
      retryable,
    });
    this.problem = problem;
    this.isCertain = isCertain;
  }
}

export interface Sending {
  readonly route: Route;
  readonly receiver: Receiver;
  /** Ends whatever is under way: the time of all messages to the route. */
  readonly deadline: AbortSignal;
  readonly withinMs: number;
  /** Ends it too: the process does. */
  readonly signal: AbortSignal | undefined;
  readonly clock: Pick<Clock, "wait">;
}

/** Errors of a connection that was never made: nothing was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EDNS"]);

/** A receiver that did not answer to the end. */
export function unanswered(
  route: Route,
  error: unknown,
  { deadline, withinMs }: Pick<Sending, "deadline" | "withinMs">,
): DeliveryError {
  const { code = "no code" } = error as { code?: string };
  return new DeliveryError({
    route,
    problem: deadline.aborted ? `does not answer within ${withinMs / 1000} s` : `does not answer (${code})`,
    isCertain: !deadline.aborted && UNSENT.has(code),
    retryable: true,
  });
}

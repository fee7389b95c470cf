import type { Clock } from "../../core/base/clock.ts";
import { UnreachableError } from "../../core/base/errors.ts";
import { type HttpProxy, proxyRefusal } from "../../core/base/proxy.ts";
import type { Secret } from "../../core/base/secret.ts";
import { isCut, NOT_ENCODED } from "../../core/base/url.ts";
import type { Database } from "../../core/store/db/database.ts";
import { DEFAULT_ROUTE, type Route } from "./alert-route.ts";
import { listRoutes } from "./alert-routes.store.ts";

/** Errors must not contain a receiver's secrets. */
export type Receiver =
  | {
      readonly type: "webhook" | "slack" | "teams" | "google_chat";
      readonly url: string;
      readonly login: Login | undefined;
    }
  | { readonly type: "pagerduty"; readonly url: string; readonly key: string }
  | {
      readonly type: "email";
      readonly server: URL;
      /** Name for EHLO. Undefined: the address has no name. */
      readonly name: string | undefined;
      readonly login: Login | undefined;
      readonly from: string;
      readonly to: readonly string[];
    };

interface Login {
  readonly user: string;
  readonly pass: string;
}

const PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue";

/** The route of USAGE_ALERT_WEBHOOK_URL, if set, then those of the owner file. */
export async function allRoutes(
  db: Database,
  secrets: ReadonlyMap<string, Secret>,
): Promise<readonly Route[]> {
  const routes = await listRoutes(db);
  return secrets.has(DEFAULT_ROUTE.setting) ? [DEFAULT_ROUTE, ...routes] : routes;
}

/** Why this process cannot send to a route. Undefined: it can. */
export function routeProblem(route: Route, secrets: ReadonlyMap<string, Secret>): string | undefined {
  try {
    receiverOf(route, secrets);
    return undefined;
  } catch (error) {
    return (error as DeliveryError).problem;
  }
}

/** A secret in a file is read each time, so the secret can be replaced without a restart. Error: `route_failed`. */
export function receiverOf(route: Route, secrets: ReadonlyMap<string, Secret>): Receiver {
  const { type, setting, sender, recipients } = route;
  const refuse = (problem: string) =>
    new DeliveryError({ route, problem: `${setting} ${problem}`, isCertain: true, retryable: false });
  const value = secrets.get(setting)?.reveal();
  if (value === undefined) throw refuse("is not set here");
  if (/:\/\//.test(value) && isCut(value)) throw refuse(NOT_ENCODED);
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (type === "email") {
    const isMail = /^smtps?:$/.test(url?.protocol ?? "") && /^\/?$/.test(url?.pathname ?? "");
    const [, name] = /^\?name=([^&]*)$/.exec(url?.search ?? "") ?? [];
    const isNamed = url?.search === "" || (name !== undefined && isHostName(name));
    // A password without a user would not be sent.
    const isWhole = url?.hostname !== "" && (url?.username !== "" || url.password === "");
    if (url === undefined || !isMail || !isNamed || !isWhole)
      throw refuse("is not of the form smtps://user:password@host, which may end with ?name=HOST");
    return { type, server: url, name, login: loginOf(url), from: sender ?? "", to: recipients };
  }
  const isWeb = /^https?:\/\//i.test(value) && url !== undefined;
  if (type === "pagerduty") {
    const key = isWeb ? url.username : value;
    const hasPassword = isWeb && url.password !== "";
    if (hasPassword || !/^[\w-]{8,64}$/.test(key))
      throw refuse("is not an integration key, nor https://KEY@host/path");
    if (!isWeb) return { type, url: PAGERDUTY_URL, key };
    url.username = "";
    return { type, url: url.href, key };
  }
  if (!isWeb) throw refuse("is not of the form https://host/path");
  const login = loginOf(url);
  Object.assign(url, { username: "", password: "" });
  return { type, url: url.href, login };
}

export function isHostName(name: string): boolean {
  return /^(?!-)[a-z\d-]+(\.[a-z\d-]+)*$/i.test(name) && /[a-z]/i.test(name);
}

function loginOf({ username, password }: URL): Login | undefined {
  if (username + password === "") return undefined;
  return { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
}

interface DeliveryFacts {
  readonly route: Pick<Route, "name" | "setting">;
  /** End of a sentence that begins with the route. */
  readonly problem: string;
  /** The message certainly did not arrive. */
  readonly isCertain: boolean;
  readonly retryable: boolean;
}

/** A message did not arrive, or may not have arrived. */
export class DeliveryError extends UnreachableError {
  readonly problem: string;
  isCertain: boolean;

  constructor({ route, problem, isCertain, retryable }: DeliveryFacts) {
    super({
      code: "route_failed",
      message: `Route ${route.name} ${problem.startsWith(route.setting) ? "has no receiver: " : ""}${problem}.`,
      next: `Check ${route.setting} with the owner of the receiver: \`usage-etl alerts test ${route.name}\`.`,
      retryable,
    });
    this.problem = problem;
    this.isCertain = isCertain;
  }
}

export interface Sending {
  readonly route: Route;
  readonly receiver: Receiver;
  /** Aborts all messages to the route `withinMs` after the first one began. */
  readonly deadline: AbortSignal;
  readonly withinMs: number;
  readonly signal: AbortSignal | undefined;
  readonly clock: Pick<Clock, "wait">;
  /** Address of the pages. Its host is the name of this program in mail. */
  readonly webUrl: string | undefined;
}

/** No connection was made, so nothing was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EDNS"]);

export function unanswered(
  error: unknown,
  { route, deadline, withinMs }: Pick<Sending, "route" | "deadline" | "withinMs">,
  proxy?: HttpProxy,
): DeliveryError {
  const { code = "no code" } = error as { code?: string };
  const refusal = proxy === undefined ? undefined : proxyRefusal(error);
  const why = refusal === undefined ? code : `it refuses with ${refusal}`;
  const through = proxy === undefined ? "" : ` through the proxy ${proxy.shown}`;
  return new DeliveryError({
    route,
    problem: `does not respond${through} ${deadline.aborted ? `within ${withinMs / 1000} s` : `(${why})`}`,
    isCertain: !deadline.aborted && (UNSENT.has(code) || refusal !== undefined),
    retryable: true,
  });
}

import { createHmac, randomBytes, randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Clock } from "../core/base/clock.ts";
import type { Config } from "../core/base/config.ts";
import { printableLine } from "../core/base/printable.ts";
import { viewersOf } from "../core/base/settings.ts";
import { sendBare } from "./layout.ts";
import { address, html, notice } from "./parts.ts";
import type { IsProxy } from "./proxies.ts";
import { LARGEST_BODY } from "./server.ts";
import type { EndedSessions } from "./sessions.ts";
import { isSameToken, WrongTries } from "./wrong-tries.ts";

const WITHOUT_LOGIN = new Set(["/login", "/logout"]);

/** Refuses requests of senders without access. Returns a lookup of a request's sender, undefined for assets and login. */
export function addGuard(
  app: FastifyInstance,
  given: Login & { readonly sessions: EndedSessions },
): (request: FastifyRequest) => Who | undefined {
  const { access, sessions } = given;
  const known = new WeakMap<FastifyRequest, Who>();
  app.addHook("onRequest", async (request, reply) => {
    const [path = ""] = request.url.split("?");
    const isAsset = path.startsWith("/assets/") || path === "/favicon.ico";
    // Pages and redirects may be for one person only, and pages are soon out of date.
    if (!isAsset) reply.header("cache-control", "no-store");
    if (access.kind === "off") return sendBare(reply, 403, OFF);
    if (access.kind === "open" && !isOwnHost(request.headers.host)) return sendBare(reply, 403, FOREIGN_HOST);
    if (isFromElsewhere(request)) return sendBare(reply, 403, FOREIGN_SITE);
    // The login page needs styles and scripts, which are the same for everybody.
    if (isAsset || (access.kind === "tokens" && WITHOUT_LOGIN.has(path))) return;
    const who = whoOf(request, given);
    if (who !== undefined && !(who.until !== undefined && (await sessions.has(who.session)))) {
      known.set(request, who);
      return;
    }
    const isBrowser = String(request.headers.accept ?? "").includes("text/html");
    if (isBrowser && request.method === "GET")
      return reply.redirect(address("/login", { next: request.url }), 303);
    if (!isBrowser || request.method !== "POST") return sendBare(reply, 401, LOG_IN);
    return reply.redirect(address("/login", { next: pageOfForm(request), unsent: "yes" }), 303);
  });
  return (request) => known.get(request);
}

/** Returns the page with the form, by the browser's Referer. `/` for a page that was itself the response to a form. */
function pageOfForm({ url, headers }: FastifyRequest): string {
  const [path = ""] = url.split("?");
  const referer = headers.referer ?? "";
  const from = URL.canParse(referer) ? new URL(referer) : undefined;
  const isOwn = from !== undefined && from.hostname === hostnameOf(headers.host);
  return isOwn && (from.search !== "" || from.pathname !== path) ? `${from.pathname}${from.search}` : "/";
}

/** True if the browser says that another site's page sent a request that changes something. */
export function isFromElsewhere({ method, headers }: FastifyRequest): boolean {
  const site = headers["sec-fetch-site"];
  return method !== "GET" && method !== "HEAD" && site !== undefined && site !== "same-origin";
}

const OFF = {
  title: "These pages are off",
  body: html`<p>The service listens beyond this machine, and nobody could be asked for a token.</p>
    <p>Set <code>USAGE_WEB_TOKEN</code> to 16 characters or more and start the service again, or listen on 127.0.0.1 only (<code>HTTP_HOST</code>).</p>`,
};
const FOREIGN_HOST = {
  title: "This address is not served",
  body: html`<p>Without a token the pages are served under the names of this machine only, such as <code>127.0.0.1</code> and <code>localhost</code>.</p>
    <p>Open them under such a name. Behind a proxy, set <code>USAGE_WEB_TOKEN</code>.</p>`,
};
const FOREIGN_SITE = {
  title: "This form was sent by another site",
  body: html`<p>Nothing was changed. <a href="/">Go to the overview</a>, and send the form there.</p>`,
};
const LOG_IN = {
  title: "Log in first",
  body: html`<p>Nothing was changed. <a href="/login">Log in</a>, and do it again.</p>`,
};

const UNSENT = "Your login has ended, so nothing was changed. Log in, and send the form again.";

const TOO_MANY_TRIES = {
  title: "Too many tries",
  body: html`<p>Ten tokens from your address were wrong. <a href="/login">Try again</a> in a minute.</p>`,
};

const bodySchema = z
  .object({ token: z.string().max(1_000).catch(""), next: z.string().max(8_000).catch("/") })
  .catch({ token: "", next: "/" });

export function addLogin(
  app: FastifyInstance,
  given: { access: Access & { kind: "tokens" }; clock: Clock; sessions: EndedSessions },
): void {
  const { access, clock, sessions } = given;
  const wrong = new WrongTries(clock);
  app.get<{ Querystring: { next?: unknown; unsent?: unknown } }>("/login", async ({ query }, reply) => {
    const said = query.unsent === undefined ? "" : notice("warn", UNSENT);
    return sendBare(reply, 200, {
      title: "Log in",
      body: html`${said}${form(pathOf(String(query.next ?? "/")))}`,
    });
  });
  app.post("/login", { bodyLimit: LARGEST_BODY }, async (request, reply) => {
    const { token, next } = bodySchema.parse(request.body ?? {});
    const role = access.roleOf(token.trim());
    if (role === undefined) {
      if (wrong.note(request.ip)) return sendBare(reply, 429, TOO_MANY_TRIES);
      const body = form(pathOf(next), "This token is not valid. Ask the operators of the service for it.");
      return sendBare(reply, 401, { title: "Log in", body });
    }
    logIn(reply, role, clock);
    return reply.redirect(pathOf(next), 303);
  });
  // The form needs no token, because a forged logout does no harm.
  app.post("/logout", { bodyLimit: LARGEST_BODY }, async (request, reply) => {
    const who = whoOf(request, { access, clock, isProxy: () => false, userHeader: undefined });
    // End the session before the cookie is cleared. If that fails, a second try still needs the cookie.
    if (who?.until !== undefined) await sessions.end(who.session, who.until);
    reply.clearCookie(COOKIE, cookieOptions(request));
    return reply.redirect("/login", 303);
  });
}

/** Returns a path on this server: `next` comes from outside and could name another host. */
function pathOf(next: string): string {
  const ours = "http://ours.invalid";
  if (!next.startsWith("/") || !URL.canParse(next, ours)) return "/";
  const url = new URL(next, ours);
  // `//name` would lead to another host.
  return url.origin === ours && !/^\/[/\\]/.test(url.pathname) ? `${url.pathname}${url.search}` : "/";
}

function form(next: string, problem?: string) {
  return html`<form class="login" method="post" action="/login">
    <input type="hidden" name="next" value="${next}">
    <label>Token
      <input type="password" name="token" required autofocus autocomplete="current-password"
        ${problem !== undefined && html`aria-invalid="true" aria-describedby="problem"`}>
    </label>
    ${problem !== undefined && html`<p id="problem" class="notice bad" role="alert">${problem}</p>`}
    <p>The service's settings USAGE_WEB_TOKEN and USAGE_WEB_READ_TOKEN hold it.</p>
    <button>Log in</button>
  </form>`;
}

/** An `operator` may change things. A `viewer` may only read, without e-mail addresses of users. */
export type Role = "operator" | "viewer";

/**
 * `open`: everybody on this machine is an operator. `tokens`: people log in. `off`: nobody has access, because no token is
 * set and the service listens beyond this machine.
 */
type Access =
  | { readonly kind: "open" | "off"; readonly key: string }
  | {
      readonly kind: "tokens";
      /** Signs cookies. Derived from the tokens: all processes have the same key, and a new token ends all sessions. */
      readonly key: string;
      /** Address of the issuer of OAuth tokens for viewers. */
      readonly issuer: string | undefined;
      readonly roleOf: (token: string) => Role | undefined;
    };

type Settings = Pick<Config, "httpHost" | "webToken" | "webReadToken">;

export function accessOf({ httpHost, webToken, webReadToken }: Settings): Access {
  const tokens: [Role, string][] = [];
  if (webToken !== undefined) tokens.push(["operator", webToken.reveal()]);
  const viewers = webReadToken && viewersOf(webReadToken.reveal());
  if (viewers?.token !== undefined) tokens.push(["viewer", viewers.token]);
  // An issuer's address is not secret, so no key is derived from it. With an issuer alone nobody logs in.
  const key =
    tokens.length === 0
      ? randomBytes(32).toString("base64")
      : createHmac("sha256", JSON.stringify(tokens)).update("pages").digest("base64");
  if (webToken === undefined && webReadToken === undefined)
    return { kind: isLoopback(httpHost) ? "open" : "off", key };
  return {
    kind: "tokens",
    key,
    issuer: viewers?.issuer,
    roleOf: (given) => tokens.find(([, token]) => isSameToken(given, token))?.[0],
  };
}

function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
}

/** True if a Host header names this machine. Another site's name may resolve to 127.0.0.1, to read what is open there. */
export function isOwnHost(header: string | undefined): boolean {
  const hostname = hostnameOf(header) ?? "";
  return isLoopback(hostname.replace(/^\[|\]$/g, "")) || hostname.endsWith(".localhost");
}

function hostnameOf(header: string | undefined): string | undefined {
  const url = `http://${header ?? ""}/`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

export interface Who {
  readonly role: Role;
  /** From a trusted proxy. Null: no proxy sent a name. */
  readonly name: string | null;
  /** Forms are valid in their session only. `open`: there is no login. */
  readonly session: string;
  /** End of the session, epoch ms. Undefined: there is no login. */
  readonly until?: number;
}

const COOKIE = "usage_etl_session";
const LASTS_MS = 12 * 3_600_000;
const LONGEST_NAME = 200;

interface Login {
  readonly access: Access;
  readonly clock: Pick<Clock, "now">;
  readonly isProxy: IsProxy;
  readonly userHeader: string | undefined;
}

function whoOf(request: FastifyRequest, { access, clock, isProxy, userHeader }: Login): Who | undefined {
  // Only a trusted proxy is believed, because another client could send any name.
  const name = isProxy(request.socket.remoteAddress) ? nameOf(request, userHeader) : null;
  if (access.kind === "open") return { role: "operator", name, session: "open" };
  const { valid, value } = request.unsignCookie(request.cookies[COOKIE] ?? "");
  const [role, until, session] = valid ? (value ?? "").split(".") : [];
  if (role !== "operator" && role !== "viewer") return undefined;
  if (session === undefined || !(Number(until) > clock.now())) return undefined;
  return { role, name, session, until: Number(until) };
}

function logIn(reply: FastifyReply, role: Role, clock: Pick<Clock, "now">): void {
  const value = `${role}.${clock.now() + LASTS_MS}.${randomUUID()}`;
  reply.setCookie(COOKIE, value, { ...cookieOptions(reply.request), signed: true, maxAge: LASTS_MS / 1000 });
}

/** `lax`, not `strict`, so that a link from another site opens the page instead of the login. */
function cookieOptions(request: FastifyRequest) {
  return { path: "/", httpOnly: true, sameSite: "lax", secure: isHttps(request) } as const;
}

/**
 * A proxy that ends TLS sends this header. Of several values the first is about the browser. With a false value a client
 * only loses its own cookie.
 */
export function isHttps({ headers }: FastifyRequest): boolean {
  return /^\s*https\s*(,|$)/i.test(String(headers["x-forwarded-proto"] ?? ""));
}

function nameOf({ headers }: FastifyRequest, userHeader: string | undefined): string | null {
  const value = userHeader === undefined ? undefined : headers[userHeader.toLowerCase()];
  const name = printableLine([value ?? ""].flat().join(", "))
    .trim()
    .slice(0, LONGEST_NAME);
  return name === "" ? null : name;
}

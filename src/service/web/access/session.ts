import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../../clock.ts";
import { printableLine } from "../../../printable.ts";
import type { Access, Role } from "./access.ts";

/** Who sees a page, or asks for a change. */
export interface Who {
  readonly role: Role;
  /** As a proxy names the person; null where nobody does. */
  readonly name: string | null;
  /** What forms of this session are bound to; `open` where nobody logs in. */
  readonly session: string;
}

const COOKIE = "usage_etl_session";
const LASTS_MS = 12 * 3_600_000;
const LONGEST_NAME = 200;

interface Login {
  readonly access: Access;
  readonly clock: Pick<Clock, "now">;
  /** The request header that a proxy sets to the person's name. */
  readonly userHeader: string | undefined;
}

/** Who sent a request; undefined if they have to log in first. */
export function whoOf(request: FastifyRequest, { access, clock, userHeader }: Login): Who | undefined {
  const name = nameOf(request, userHeader);
  if (access.kind === "open") return { role: "operator", name, session: "open" };
  const { valid, value } = request.unsignCookie(request.cookies[COOKIE] ?? "");
  const [role, until, session] = valid ? (value ?? "").split(".") : [];
  if (role !== "operator" && role !== "viewer") return undefined;
  if (session === undefined || !(Number(until) > clock.now())) return undefined;
  return { role, name, session };
}

export function logIn(reply: FastifyReply, role: Role, clock: Pick<Clock, "now">): void {
  const value = `${role}.${clock.now() + LASTS_MS}.${randomUUID()}`;
  reply.setCookie(COOKIE, value, { ...cookieOptions(reply.request), signed: true, maxAge: LASTS_MS / 1000 });
}

export function logOut(reply: FastifyReply): void {
  reply.clearCookie(COOKIE, cookieOptions(reply.request));
}

/** `lax`, not `strict`: an address that somebody shared opens the page and not the login. */
function cookieOptions(request: FastifyRequest) {
  return { path: "/", httpOnly: true, sameSite: "lax", secure: isHttps(request) } as const;
}

/** A proxy ends TLS and says so. Whoever says so falsely only keeps their own cookie from being sent. */
export function isHttps(request: FastifyRequest): boolean {
  return request.protocol === "https" || request.headers["x-forwarded-proto"] === "https";
}

function nameOf({ headers }: FastifyRequest, userHeader: string | undefined): string | null {
  const value = userHeader === undefined ? undefined : headers[userHeader.toLowerCase()];
  const name = printableLine([value ?? ""].flat().join(", "))
    .trim()
    .slice(0, LONGEST_NAME);
  return name === "" ? null : name;
}

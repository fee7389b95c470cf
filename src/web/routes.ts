import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Clock } from "../core/base/clock.ts";
import type { Config } from "../core/base/config.ts";
import { EtlError, reasonOf, UnreachableError, UsageError } from "../core/base/errors.ts";
import type { Logger } from "../core/base/log.ts";
import { addDays, isDay } from "../core/domain/time/days.ts";
import type { Database, Store } from "../core/store/db/database.ts";
import { inSnapshot } from "../core/store/db/snapshot.ts";
import { storeNow } from "../core/store/work/fetch-ledger.ts";
import type { Actor } from "../core/store/work/operator-actions.ts";
import { isHttps, type Who } from "./access.ts";
import { within } from "./health.ts";
import { type Counts, type Page, sendPage } from "./layout.ts";
import type { Html } from "./parts.ts";
import { type Chooses, cookieOf, inPlace, PLACE_COOKIE, type Place, placeOf } from "./place.ts";
import type { EndedSessions } from "./sessions.ts";

/** Pages and workers have separate pools, so that neither waits for the other. A slower page is a defect. */
export const PAGES_POOL = { maxConnections: 4, statementTimeoutMs: 8_000 } as const;

export interface QueueSight {
  /** Processes that fetch. Undefined: Redis does not list its clients. */
  readonly workers: number | undefined;
  /** Epoch ms; undefined without a schedule. */
  readonly nextSync: number | undefined;
}

export interface WebServices {
  readonly config: Config;
  readonly store: Store;
  readonly reader: Database;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reads the queues of each source. Error: `redis_unreachable`. Undefined: the service runs without Redis. */
  readonly lookAtQueues: (() => Promise<{ readonly sources: ReadonlyMap<string, QueueSight> }>) | undefined;
  /** Enqueues the tasks of a source at once. If Redis is away, the schedule does it later. Never rejects. */
  readonly enqueue: (slug: string) => Promise<void>;
}

export interface Context<Query = unknown, Params = unknown> extends WebServices {
  readonly db: Database;
  readonly query: Query;
  readonly params: Params;
  readonly who: Who;
  readonly isOperator: boolean;
  readonly masked: boolean;
  readonly actor: Actor;
  /** Postgres's clock, epoch ms. */
  readonly now: number;
  /** The source and month of the header. Undefined for files and live parts, whose addresses name all. */
  readonly place: Place | undefined;
  readonly csrf: () => string;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

type Schema = z.ZodType;
const NOTHING = z.unknown();
type Nothing = typeof NOTHING;

interface Schemas<Q extends Schema, P extends Schema> {
  readonly query?: Q;
  readonly params?: P;
}

interface Reads<Q extends Schema, P extends Schema> extends Schemas<Q, P> {
  /** True: all reads are as of one instant. Otherwise a load in between could make the page contradict itself. */
  readonly oneInstant?: boolean;
}

interface Shows<Q extends Schema, P extends Schema> extends Reads<Q, P> {
  readonly header?: Chooses;
}

/** Reads the counts of the navigation, of a source or of all. */
type CountOpen = (context: Context, source: string | undefined) => Promise<Counts>;

export type Web = ReturnType<typeof routesOf>;

interface Around {
  readonly services: WebServices;
  readonly whoSent: (request: FastifyRequest) => Who;
  readonly sessions: EndedSessions;
  readonly canLogOut: boolean;
}

export function routesOf(app: FastifyInstance, around: Around) {
  const { services, whoSent, sessions } = around;
  let countOpen: CountOpen = async () => ({});
  const counted = new Map<string | undefined, { readonly at: number; readonly counts: Promise<Counts> }>();
  const countsOf = (context: Context, source: string | undefined) => {
    const kept = counted.get(source);
    if (kept !== undefined && context.now - kept.at < COUNTS_LAST_MS) return kept.counts;
    const counts = countOpen(context, source);
    counted.set(source, { at: context.now, counts });
    counts.catch(() => counted.delete(source));
    return counts;
  };
  const sent = async (context: Context, header: Chooses, page: Page | { readonly redirect: string }) => {
    if ("redirect" in page) return context.reply.redirect(page.redirect, 303);
    const { reply, request, now, who, place } = context;
    const kept = request.cookies[PLACE_COOKIE];
    const text = place && cookieOf(place, kept);
    if (text !== undefined && text !== kept)
      reply.setCookie(PLACE_COOKIE, text, {
        ...{ path: "/", httpOnly: true, sameSite: "lax", secure: isHttps(request) },
        maxAge: PLACE_LASTS_S,
      });
    const counts = place === undefined ? {} : await countsOf(context, place.shown);
    return sendPage(reply, page, { asOf: now, who, canLogOut: around.canLogOut, place, header, counts });
  };
  return {
    /** Names what counts what is open, for the navigation of every page. */
    counts(count: CountOpen): void {
      countOpen = count;
    },

    page<Q extends Schema = Nothing, P extends Schema = Nothing>(
      path: string,
      reads: Shows<Q, P>,
      show: (context: Context<z.output<Q>, z.output<P>>) => Promise<Page | { readonly redirect: string }>,
    ): void {
      app.get(path, async (request, reply) => {
        const { header = {} } = reads;
        const [context, page] = await shown(around, reads, { request, reply, header }, show);
        return sent(context, header, page);
      });
    },

    file<Q extends Schema = Nothing, P extends Schema = Nothing>(
      path: string,
      schemas: Schemas<Q, P>,
      give: (context: Context<z.output<Q>, z.output<P>>) => Promise<FastifyReply>,
    ): void {
      app.get(path, async (request, reply) => {
        return give(await contextOf(around, schemas, { request, reply }));
      });
    },

    action<B extends Schema, Q extends Schema = Nothing, P extends Schema = Nothing>(
      path: string,
      schemas: Schemas<Q, P> & { readonly body: B },
      change: (
        context: Context<z.output<Q>, z.output<P>> & { readonly body: z.output<B> },
      ) => Promise<Page | { readonly redirect: string }>,
    ): void {
      const operatorsOnly = async (request: FastifyRequest) => {
        if (whoSent(request).role === "operator") return;
        throw new UsageError({
          code: "viewer_refused",
          message: "Your login is read-only. Nothing was changed.",
          next: "Log out, then log in with the operators' token (USAGE_WEB_TOKEN).",
        });
      };
      const options = { preHandler: [operatorsOnly, app.csrfProtection] };
      app.post(path, options, async (request, reply) => {
        const context = await contextOf(around, schemas, { request, reply, header: {} });
        const body = parsed(schemas.body, request.body ?? {}, "form_invalid");
        const done = await change({ ...context, body });
        counted.clear();
        return sent(context, {}, done);
      });
    },

    /** Reads the inner HTML of the element with `data-live="PATH"` each `everyMs`, and sends it if it differs. */
    live<Q extends Schema = Nothing, P extends Schema = Nothing>(
      path: string,
      reads: Reads<Q, P> & { readonly everyMs: number },
      show: (context: Context<z.output<Q>, z.output<P>>) => Promise<Html>,
    ): void {
      app.get(path, { sse: "only" }, async (request, reply) => {
        const { session, until } = whoSent(request);
        const fragment = async () => {
          if (until !== undefined && (await sessions.has(session))) throw loggedOut();
          const [{ now }, content] = await shown(around, reads, { request, reply }, show);
          return { content: String(content), asOf: now };
        };
        const { everyMs } = reads;
        const by = until === undefined ? {} : { session, address: request.ip };
        await liveUpdates(reply, { by, fragment, everyMs, clock: services.clock, log: services.log });
      });
    },
  };
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Undefined: there is no header, so the query is what the address says. */
  readonly header?: Chooses;
}

const PLACE_LASTS_S = 400 * 86_400;
/** Counting takes longer than most pages. A change on a page counts again. */
const COUNTS_LAST_MS = 15_000;

async function contextOf<Q extends Schema, P extends Schema>(
  { services, whoSent }: Around,
  { query, params }: Schemas<Q, P>,
  { request, reply, header }: Exchange,
): Promise<Context<z.output<Q>, z.output<P>>> {
  const who = whoSent(request);
  const isOperator = who.role === "operator";
  const db = services.reader;
  const now = await nowOf(db);
  const given = withEnd(request.query);
  const cookie = request.cookies[PLACE_COOKIE];
  const about = { query: given, params: request.params as Record<string, unknown>, cookie, now };
  const place = header && (await placeOf(db, about, header));
  let token: string | undefined;
  return {
    ...services,
    db,
    query: parsed(
      query ?? NOTHING,
      place === undefined ? given : inPlace(given, place, header ?? {}),
      "query_invalid",
    ) as z.output<Q>,
    params: parsed(params ?? NOTHING, request.params, "page_unknown") as z.output<P>,
    who,
    isOperator,
    masked: !isOperator,
    actor: { name: who.name, role: who.role, via: "page" },
    now,
    place,
    // Called once: without a cookie, each call makes another secret, and only the last form would be valid.
    csrf: () => {
      token ??= reply.generateCsrf({ userInfo: who.session, secure: isHttps(request) });
      return token;
    },
    request,
    reply,
  };
}

async function shown<Q extends Schema, P extends Schema, T>(
  around: Around,
  reads: Reads<Q, P>,
  exchange: Exchange,
  show: (context: Context<z.output<Q>, z.output<P>>) => Promise<T>,
) {
  const context = await contextOf(around, reads, exchange);
  const content = reads.oneInstant
    ? await inSnapshot(context.db, (db) => show({ ...context, db }))
    : await show(context);
  return [context, content] as const;
}

function parsed<S extends Schema>(schema: S, given: unknown, code: string): z.output<S> {
  // No text in Postgres has a NUL.
  if (hasNul(given)) {
    throw new UsageError({
      code,
      message: "The address or the form has a NUL character, which no name and no id has.",
      next: "Correct it, or begin at the overview.",
    });
  }
  const { data, error } = schema.safeParse(given);
  if (error === undefined) return data;
  const said = error.issues.map(({ path, message }) => `${path.join(".") || "It"}: ${message}`).join("; ");
  throw new UsageError({
    code,
    message: `Something in the ${code === "form_invalid" ? "form" : "address"} cannot be used. ${said}.`,
    next: "Go back and correct it, or begin at the overview.",
  });
}

/** Turns a form's last day of a range (`until`) into the day after it (`to`). */
function withEnd(query: unknown): Record<string, unknown> {
  const { until, ...rest } = query as Record<string, unknown>;
  if (typeof until !== "string" || until === "") return rest;
  // An invalid day stays as it is, and is refused later.
  return { ...rest, to: isDay(until) ? addDays(until, 1) : until };
}

function hasNul(given: unknown): boolean {
  if (typeof given === "string") return given.includes("\0");
  return typeof given === "object" && given !== null && Object.values(given).some(hasNul);
}

/** A page does not wait longer for a Postgres that is cut off. */
async function nowOf(reader: Database): Promise<number> {
  return within(storeNow(reader)).catch((cause: Error) => {
    throw new UnreachableError({
      code: "postgres_unreachable",
      message: `The figures of this page are in Postgres, which cannot be read now: ${cause.message}.`,
      next: "Nothing is lost. Run `usage-etl doctor` to see the cause, and reload this page once Postgres responds.",
      cause,
    });
  });
}

/** Longest time of a stream. A page that is still visible requests a new one. */
const LASTS_MS = 10 * 60_000;
/** Most streams at once. Sessions and addresses have lower limits, so that some are left for others. */
const MOST = 50;
const MOST_OF_SESSION = 10;
const MOST_OF_ADDRESS = 40;
const open = new Set<Follower>();

/** Empty without a login, because then everybody is at this machine. */
interface Follower {
  readonly session?: string;
  readonly address?: string;
}

function isBusy({ session, address }: Follower): boolean {
  const others = [...open];
  if (others.length >= MOST) return true;
  return (
    session !== undefined &&
    (others.filter((one) => one.session === session).length >= MOST_OF_SESSION ||
      others.filter((one) => one.address === address).length >= MOST_OF_ADDRESS)
  );
}

function loggedOut(): UsageError {
  return new UsageError({
    code: "logged_out",
    message: "This session was logged out.",
    next: "Log in again.",
  });
}

interface Followed {
  readonly fragment: () => Promise<{ readonly content: string; readonly asOf: number }>;
  readonly everyMs: number;
  readonly clock: Clock;
}

async function liveUpdates(
  reply: FastifyReply,
  { by, fragment, everyMs, clock, log }: Followed & { readonly by: Follower; readonly log: Logger },
): Promise<void> {
  if (isBusy(by)) {
    throw new EtlError({
      code: "pages_busy",
      message: "Too many pages are already open with live updates.",
      next: "Reload the page to see current figures.",
    });
  }
  open.add(by);
  const left = new AbortController();
  reply.raw.once("close", () => left.abort());
  try {
    await reply.sse.send(changes({ fragment, everyMs, clock, signal: left.signal }));
  } catch (error) {
    if (!left.signal.aborted) {
      log.warn({ code: "live_page", reason: reasonOf(error) }, "page");
    }
  } finally {
    open.delete(by);
  }
}

async function* changes({ fragment, everyMs, clock, signal }: Followed & { readonly signal: AbortSignal }) {
  const ends = clock.now() + LASTS_MS;
  let last: string | undefined;
  while (!signal.aborted && clock.now() < ends) {
    const { content, asOf } = await fragment();
    // `same`: the content is still current.
    yield {
      id: `${asOf}`,
      ...(content === last ? { event: "same", data: "" } : { event: "fragment", data: content }),
    };
    last = content;
    await clock.wait(everyMs, signal).catch(() => {});
  }
}

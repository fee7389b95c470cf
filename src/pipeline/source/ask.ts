import type { FetchStamp } from "../../domain/coverage/finality.ts";
import { type Member, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import type { Window } from "../../domain/time/window.ts";
import { AnswerCollector, type AnswerFlaw } from "../../domain/usage/answer.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import { PlatformError } from "../../errors.ts";
import type { UsageQuery } from "../../platform/billing/billing.ts";
import { noteRefusal, wasRefusedWithin } from "../../store/catalog/sources.ts";
import { beginFetch, type FetchEnd, type FetchPurpose, finishFetch } from "../../store/load/fetch-ledger.ts";
import { withRetries } from "./retries.ts";
import type { EnteredSource, OpenSource, SourceDeps } from "./source.ts";

/**
 * Sends one request within the rate limit, and retries it where that can help. A refused key is kept for
 * every process. Throws the last error.
 */
export async function ask<T>(
  source: SourceDeps & EnteredSource,
  send: () => Promise<T>,
  attempts?: number,
): Promise<T> {
  try {
    return await askAside(source, send, attempts);
  } catch (error) {
    await keepRefusal(source, error);
    throw error;
  }
}

/** The same for a request that a usage key may not send: its refusal says nothing about the source. */
export async function askAside<T>(source: SourceDeps, send: () => Promise<T>, attempts?: number): Promise<T> {
  return withRetries(
    source,
    async () => {
      await source.admit();
      source.signal?.throwIfAborted();
      source.gate?.check();
      return withCurrentKey(source, send);
    },
    attempts,
  );
}

/** Sends it again if the key was refused and has been replaced meanwhile. */
async function withCurrentKey<T>({ config: { apiKey } }: SourceDeps, send: () => Promise<T>): Promise<T> {
  for (let key = apiKey.reveal(); ; key = apiKey.reveal()) {
    try {
      return await send();
    } catch (error) {
      if (!isKeyRefused(error) || apiKey.reveal() === key) throw error;
    }
  }
}

type AnyMember = Pick<Member, "workspaceId">;

interface Question<M extends AnyMember> {
  readonly purpose: FetchPurpose;
  /** A function is called for each attempt, after any wait: a window may end now. */
  readonly request: UsageRequest<M> | (() => Promise<UsageRequest<M>>);
  /** Called before each attempt is sent. */
  readonly onAttempt?: (stamp: FetchStamp) => void;
}

/** One attempt: its request, fetch number and time. */
interface Attempt<M extends AnyMember = Member> {
  readonly request: UsageRequest<M>;
  readonly stamp: FetchStamp;
}

/** What a reader made of a response, and how the ledger of fetches records it. */
export interface Reading<T> extends FetchEnd {
  readonly result: T;
}

/**
 * The only way to request usage that is stored or compared: it owns retries, the rate limit, the abort
 * signal, the ledger of fetches and a refused key. `read` sends one attempt's request and reads its response.
 * Each attempt draws a new fetch number first, because these order responses. Errors of `read` are thrown
 * unchanged; a `PlatformError` ends the attempt in the ledger as failed, or as refused for a wrong record.
 */
export async function askUsage<T, M extends AnyMember = Member>(
  source: OpenSource,
  { purpose, request: asked, onAttempt }: Question<M>,
  read: (attempt: Attempt<M>) => Promise<Reading<T>>,
): Promise<T> {
  const { store, sourceId, runId } = source;
  const send = async () => {
    const request = typeof asked === "function" ? await asked() : asked;
    const { meter, groupBy, window, members } = request;
    const fetch = { sourceId, runId, purpose, meter, groupBy, window, workspaces: members.length };
    const stamp = await beginFetch(store.db, fetch);
    onAttempt?.(stamp);
    try {
      const { result, ...end } = await read({ request, stamp });
      await finishFetch(store.db, stamp, end);
      return result;
    } catch (error) {
      if (error instanceof PlatformError) {
        // A response with a wrong record is a response. Only a request that got none, or a foreign one, has failed
        // (store/load/failures.ts).
        const outcome = error.isAboutRecords ? "refused" : "failed";
        await finishFetch(store.db, stamp, { outcome, code: error.code, status: error.status });
      }
      throw error;
    }
  };
  try {
    return await askAside(source, send);
  } catch (error) {
    const { meter } = typeof asked === "function" ? await asked() : asked;
    if (isKeyRefused(error, meter)) await keepRefusal(source, error);
    throw error;
  }
}

/** One page of many is retried separately, because otherwise a response of a thousand pages would begin anew. */
const PAGE_ATTEMPTS = 5;

/** Sends every request of a response but the first. */
export function sendMoreOf(source: SourceDeps): <T>(send: () => Promise<T>) => Promise<T> {
  const { admit, admitMore = admit } = source;
  return (send) => askAside({ ...source, admit: admitMore }, send, PAGE_ATTEMPTS);
}

/** The platform client's query for a request. */
export function queryOf(request: UsageRequest<AnyMember>): UsageQuery {
  const { meter, groupBy } = request;
  const { start, end } = request.window;
  return { start, end, meter, groupBy, workspaceIds: workspaceIdsOf(request) };
}

/**
 * Reads one JSON response to its proven end. `flaw` is the reason not to use it. `grid` is where its buckets must lie; default:
 * in the request's window and stride.
 */
export async function collectAnswer(
  source: OpenSource,
  request: UsageRequest<AnyMember>,
  {
    grid,
    admit = (records) => records,
    mostKeys,
  }: {
    grid?: Window;
    admit?: (records: UsageRecord[]) => UsageRecord[];
    mostKeys?: number | undefined;
  } = {},
): Promise<{ answer: AnswerCollector; flaw: AnswerFlaw | undefined; rules: readonly RunRule[] }> {
  const query = queryOf(request);
  const answer = new AnswerCollector({ ...query, window: grid ?? request.window, mostKeys });
  const rules: RunRule[] = [];
  const { stride } = await source.billing.usage(query, {
    signal: source.signal,
    onRecords: (records) => answer.add(admit(records)),
    onRules: (named) => void rules.push(...named),
    sendMore: sendMoreOf(source),
  });
  return { answer, flaw: answer.flaw(grid?.stride ?? stride), rules };
}

/** A response to compare with what is stored. Throws `PlatformError` with the flaw's code if it cannot be used. */
export async function collectUsable(
  source: OpenSource,
  request: UsageRequest<AnyMember>,
  grid?: Window,
): Promise<AnswerCollector> {
  const { answer, flaw } = await collectAnswer(source, request, grid === undefined ? {} : { grid });
  if (flaw === undefined) return answer;
  throw new PlatformError({
    code: flaw.code,
    method: "GET",
    url: source.config.baseUrl,
    message: `The answer by ${request.groupBy} cannot be used: ${flaw.message}.`,
    next: "Nothing was changed. Run `usage-etl doctor` to see what the server answers.",
  });
}

/** How long a refused key is not sent again. */
const REFUSED_FOR_MS = 3_600_000;

type KeyRefused = PlatformError & { readonly status: 401 | 403 };

/** A key that may not read another meter (403) can still read traces. A key that is not valid (401) reads nothing. */
export function isKeyRefused(error: unknown, meter: Meter = "traces"): error is KeyRefused {
  if (!(error instanceof PlatformError)) return false;
  return error.status === 401 || (error.status === 403 && meter === "traces");
}

/**
 * True if the server refuses the parameters of other meters (docs/platform.md, Two live contracts), also to
 * this key. A request about one workspace may be refused because of that workspace.
 */
export function isMeterRefused(meter: Meter, { status, locations, message, url }: PlatformError): boolean {
  if (METER[meter].isByWorkspace) return false;
  if (status === 403) return true;
  if (status !== 400 && status !== 422) return false;
  // The URL contains these words whatever is refused.
  return [...locations, message.replaceAll(url, "")].some((text) => /\b(kind|trace_tier)\b/.test(text));
}

/** Keeps a refused key (401, 403), so that no other process sends it again and `status` shows why. */
export async function keepRefusal(source: EnteredSource & SourceDeps, error: unknown): Promise<void> {
  if (!isKeyRefused(error)) return;
  const { store, sourceId, config } = source;
  const key = config.apiKey.reveal();
  await noteRefusal(store.db, sourceId, { code: error.code, message: error.message });
  // Another key was configured meanwhile, and the process that noticed may have lifted the refusal before it was stored.
  if (config.apiKey.reveal() !== key) await liftRefusal(source);
}

export async function liftRefusal({ store, sourceId }: EnteredSource): Promise<void> {
  await noteRefusal(store.db, sourceId, undefined);
}

/** True if the platform refused the key within the last hour. Nothing sends it then. */
export async function isRefusedLately({ store, sourceId }: EnteredSource): Promise<boolean> {
  return wasRefusedWithin(store.db, sourceId, REFUSED_FOR_MS);
}

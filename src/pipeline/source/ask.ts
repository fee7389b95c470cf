import type { FetchStamp } from "../../domain/coverage/finality.ts";
import { type Member, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import type { Window } from "../../domain/time/window.ts";
import { AnswerCollector, type AnswerFlaw } from "../../domain/usage/answer.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import { PlatformError } from "../../errors.ts";
import type { UsageQuery } from "../../platform/billing/billing.ts";
import { noteRefusal, wasRefusedWithin } from "../../store/catalog/sources.ts";
import { beginFetch, type FetchEnd, type FetchPurpose, finishFetch } from "../../store/load/fetch-ledger.ts";
import { withRetries } from "./retries.ts";
import type { EnteredSource, OpenSource, SourceDeps } from "./source.ts";

/**
 * Sends one request within the source's rate limit, and again where that is worth it. A refused key is kept for every
 * process. Throws the last error unchanged.
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

/** The same for what a key that reads usage may not ask for: its refusal says nothing of the source. */
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

/** Sends it again if the key was refused and another one has come meanwhile: then nothing is wrong with the source. */
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
  /** A function is called for each attempt, after any wait: for a window that ends now. */
  readonly request: UsageRequest<M> | (() => Promise<UsageRequest<M>>);
  /** Called before each attempt is sent. */
  readonly onAttempt?: (stamp: FetchStamp) => void;
}

/** One attempt: what was asked, under which number and at what time. */
interface Attempt<M extends AnyMember = Member> {
  readonly request: UsageRequest<M>;
  readonly stamp: FetchStamp;
}

/** What a reader made of an answer, and how the ledger of fetches records it. */
export interface Reading<T> extends FetchEnd {
  readonly result: T;
}

/**
 * Asks the platform for usage. This is the only way to do so: it owns retries, the rate limit, the abort signal, the
 * ledger of fetches and a refused key. `read` sends one attempt's request and reads its answer.
 *
 * Each attempt draws a new fetch number before it is sent, since fetch numbers order answers. What `read` throws is
 * thrown unchanged; a `PlatformError` ends the attempt's row in the ledger as failed, or refused for a wrong record.
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
        // An answer with a wrong record is one: only a request that got none, or a foreign one, has failed (store/load/failures.ts).
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

/** One page of many is tried again by itself: else an answer of a thousand pages would begin anew. */
const PAGE_ATTEMPTS = 5;

/** How each request of an answer but the first is sent. */
export function sendMoreOf(source: SourceDeps): <T>(send: () => Promise<T>) => Promise<T> {
  const { admit, admitMore = admit } = source;
  return (send) => askAside({ ...source, admit: admitMore }, send, PAGE_ATTEMPTS);
}

/** What the platform's client is asked for a request. */
export function queryOf(request: UsageRequest<AnyMember>): UsageQuery {
  const { meter, groupBy } = request;
  const { start, end } = request.window;
  return { start, end, meter, groupBy, workspaceIds: workspaceIdsOf(request) };
}

/**
 * Reads one JSON answer to its proven end. `flaw` is the reason not to use it. `grid` is where its buckets must lie: by
 * default in the request's window, in the stride that was planned.
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

/** An answer to compare with what is stored. Throws `PlatformError` with the flaw's code where it cannot be used. */
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

/** How long a refused key is left alone. */
const REFUSED_FOR_MS = 3_600_000;

type KeyRefused = PlatformError & { readonly status: 401 | 403 };

/** A key that may not read another meter (403) says nothing of traces. One that is not valid at all is another matter. */
export function isKeyRefused(error: unknown, meter: Meter = "traces"): error is KeyRefused {
  if (!(error instanceof PlatformError)) return false;
  return error.status === 401 || (error.status === 403 && meter === "traces");
}

/** Keeps a refused key (401, 403), so that no other process sends it again and `status` shows why. */
export async function keepRefusal(source: EnteredSource & SourceDeps, error: unknown): Promise<void> {
  if (!isKeyRefused(error)) return;
  const { store, sourceId, config } = source;
  const key = config.apiKey.reveal();
  await noteRefusal(store.db, sourceId, { code: error.code, message: error.message });
  // Another key came meanwhile, and whoever noticed may have lifted the refusal before it was noted.
  if (config.apiKey.reveal() !== key) await liftRefusal(source);
}

/** Forgets it: another key is used now. */
export async function liftRefusal({ store, sourceId }: EnteredSource): Promise<void> {
  await noteRefusal(store.db, sourceId, undefined);
}

/** Whether the platform refused the key within the last hour. Nothing sends it then. */
export async function isRefusedLately({ store, sourceId }: EnteredSource): Promise<boolean> {
  return wasRefusedWithin(store.db, sourceId, REFUSED_FOR_MS);
}

import { PlatformError } from "../../base/errors.ts";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import { type Member, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import { ResponseCollector, type ResponseProblem } from "../../domain/usage/response.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import type { BillingClient, UsageQuery } from "../../platform/billing/billing.ts";
import { beginFetch, type FetchEnd, type FetchPurpose, finishFetch } from "../../store/work/fetch-ledger.ts";
import { isKeyRefused, keepRefusal } from "./refused-key.ts";
import { sendAside } from "./send-request.ts";
import type { OpenSource, SourceDeps } from "./source.ts";

type AnyMember = Pick<Member, "workspaceId">;

interface Question<M extends AnyMember> {
  readonly purpose: FetchPurpose;
  /** A function is called before each attempt, because a window may have to end at that moment. */
  readonly request: UsageRequest<M> | (() => Promise<UsageRequest<M>>);
  readonly onAttempt?: (fetchToken: FetchToken) => void;
}

interface Attempt<M extends AnyMember = Member> {
  readonly request: UsageRequest<M>;
  readonly fetchToken: FetchToken;
}

export interface Reading<T> extends FetchEnd {
  readonly result: T;
}

/**
 * Sends every request for usage that is stored or compared, with retries, rate limit, abort signal, ledger of fetches and
 * handling of a refused key. `read` sends one attempt's request and reads its response. Each attempt first draws a new fetch
 * number, which orders responses. Errors of `read` are thrown unchanged. A `PlatformError` ends the attempt in the ledger as
 * failed, or as refused for a wrong record.
 */
export async function fetchUsage<T, M extends AnyMember = Member>(
  source: OpenSource,
  { purpose, request: requested, onAttempt }: Question<M>,
  read: (attempt: Attempt<M>) => Promise<Reading<T>>,
): Promise<T> {
  const { store, sourceId, runId } = source;
  const send = async () => {
    const request = typeof requested === "function" ? await requested() : requested;
    const { meter, groupBy, window, members } = request;
    const fetch = { sourceId, runId, purpose, meter, groupBy, window, workspaces: members.length };
    const fetchToken = await beginFetch(store.db, fetch);
    onAttempt?.(fetchToken);
    try {
      const { result, ...end } = await read({ request, fetchToken });
      await finishFetch(store.db, fetchToken, end);
      return result;
    } catch (error) {
      if (error instanceof PlatformError) {
        // A response with a wrong record is refused. A request has failed only if its response is missing or foreign
        // (store/catalog/failures.ts).
        const outcome = error.isAboutRecords ? "refused" : "failed";
        await finishFetch(store.db, fetchToken, { outcome, code: error.code, status: error.status });
      }
      throw error;
    }
  };
  try {
    return await sendAside(source, send);
  } catch (error) {
    const { meter } = typeof requested === "function" ? await requested() : requested;
    if (isKeyRefused(error, meter)) await keepRefusal(source, error);
    throw error;
  }
}

export function queryOf(request: UsageRequest<AnyMember>): UsageQuery {
  const { meter, groupBy } = request;
  const { start, end } = request.window;
  return { start, end, meter, groupBy, workspaceIds: workspaceIdsOf(request) };
}

/** Attempts for each page. Without them, one failed page would restart a response of a thousand pages. */
const PAGE_ATTEMPTS = 5;

/** Passes on records as they are read. They count only once this resolves, because then the response is whole. */
export function readRecords(
  source: SourceDeps,
  request: UsageRequest<AnyMember>,
  io: Omit<Parameters<BillingClient["usage"]>[1], "signal" | "sendMore">,
): ReturnType<BillingClient["usage"]> {
  const { billing, signal, admit, admitMore = admit } = source;
  return billing.usage(queryOf(request), {
    ...io,
    signal,
    sendMore: (send) => sendAside({ ...source, admit: admitMore }, send, PAGE_ATTEMPTS),
  });
}

/**
 * Adds up one response, to its proven end. `problem`: why it cannot be used. `grid`: where its buckets must lie; default: the
 * request's window and stride.
 */
export async function addUpResponse(
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
): Promise<{ response: ResponseCollector; problem: ResponseProblem | undefined; rules: readonly RunRule[] }> {
  const response = new ResponseCollector({ ...queryOf(request), window: grid ?? request.window }, mostKeys);
  const rules: RunRule[] = [];
  const refused = new Set<string>();
  let stride: Stride | undefined;
  try {
    ({ stride } = await readRecords(source, request, {
      onRecords: (records) => {
        response.add(admit(records));
        // Ends the request: the rest of the response is not used, and may be endless.
        if (response.isFull) throw new Error("the response names too many ids");
      },
      onRules: (named) => void rules.push(...named),
      onRefused: (value) => void (refused.size < MOST_REFUSED && refused.add(value)),
    }));
  } catch (error) {
    if (!response.isFull) throw error;
  }
  const [first] = refused;
  if (first !== undefined)
    source.log.warn(
      { code: "units_refused", workspaceId: queryOf(request).workspaceIds[0], refused: refused.size },
      `Standard units of sandboxes were left out, so they are not available on these days, such as ${first}.`,
    );
  return { response, problem: response.problem(grid?.stride ?? stride), rules };
}

/** Different refused values of one response that are counted. */
const MOST_REFUSED = 100;

/** Throws `PlatformError` with the problem's code if the response cannot be used. */
export async function addUpUsable(
  source: OpenSource,
  request: UsageRequest<AnyMember>,
  how: { grid?: Window; mostKeys?: number } = {},
): Promise<ResponseCollector> {
  const { response, problem } = await addUpResponse(source, request, how);
  if (problem === undefined) return response;
  throw new PlatformError({
    code: problem.code,
    method: "GET",
    url: source.config.baseUrl,
    message: `The response by ${request.groupBy} cannot be used: ${problem.message}.`,
    next: "Nothing was changed. Run `usage-etl doctor` to see what the server responds.",
  });
}

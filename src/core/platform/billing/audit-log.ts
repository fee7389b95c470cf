import { z } from "zod";
import type { Interval } from "../../domain/time/window.ts";
import type { PlatformHttp, RequestOptions } from "../http/http.ts";
import { readJson, responseError } from "../http/read-body.ts";
import { foreignError, tooManyPagesError } from "../parse/response-error.ts";
import { describeValue, toWireTime } from "../parse/wire-values.ts";

export interface LoggedChange {
  readonly id: string;
  readonly operation: string;
  /** Epoch ms. */
  readonly at: number;
  /** Null: the entry names no workspace. */
  readonly workspaceId: string | null;
  /** The platform's id of a user. Null: the entry names none. */
  readonly userId: string | null;
  /** Null: the entry does not say, or contradicts itself. */
  readonly hasSucceeded: boolean | null;
}

interface LoggedChanges {
  readonly changes: readonly LoggedChange[];
  /** Entries that were left out, each with its place. */
  readonly refused: readonly string[];
}

const PAGE = 100;
const MOST_PAGES = 1000;

const pageSchema = z.object({ items: z.array(z.unknown()), cursor: z.string().min(1).nullish() });
const uuid = z.guid().toLowerCase();
const needed = z.object({
  time: z.int(),
  metadata: z.object({ uid: uuid }),
  api: z.object({ operation: z.string().min(1) }),
});
/** An entry is kept without these. An actor that is no UUID may be an address, which is not kept. */
const optional = z.object({
  status_id: z.int().nullish().catch(null),
  actor: z
    .object({ user: z.object({ uid: uuid.nullish().catch(null) }) })
    .nullish()
    .catch(null),
  unmapped: z
    .object({
      original_audit_log: z.object({
        operation_succeeded: z.boolean().nullish().catch(null),
        workspace_id: uuid.nullish().catch(null),
      }),
    })
    .nullish()
    .catch(null),
});
const STATUS = new Map([
  [1, true],
  [2, false],
]);

/**
 * Reads the entries of some operations, each id once. `start` and `end` are included. `sendMore` sends each request but the
 * first. Errors: those of `get`; `response_invalid` for a response that is no page, and for pages without end.
 */
export async function loggedChanges(
  http: PlatformHttp,
  {
    start,
    end,
    operations,
    signal,
    sendMore,
  }: Interval &
    RequestOptions & {
      readonly operations: readonly string[];
      readonly sendMore: <T>(send: () => Promise<T>) => Promise<T>;
    },
): Promise<LoggedChanges> {
  const found = new Map<string, LoggedChange>();
  const refused: string[] = [];
  const cursors = new Set<string>();
  for (let [page, cursor]: [number, string | null] = [0, null]; ; page++) {
    const query = new URLSearchParams({
      start_time: toWireTime(start),
      end_time: toWireTime(end),
      limit: `${PAGE}`,
    });
    for (const operation of operations) query.append("operations", operation);
    if (cursor !== null) query.set("cursor", cursor);
    const send = () => http.get({ path: "/api/v1/audit-logs", query, signal });
    const response = await (page === 0 ? send() : sendMore(send));
    const { items, cursor: next = null } = await readJson(response, pageSchema);
    for (const [nth, wire] of items.entries()) {
      const change = fromWire(wire, { start, end, nth: page * PAGE + nth });
      if (typeof change === "string") refused.push(change);
      // A server that does not know the parameter sends every operation.
      else if (operations.includes(change.operation) && !found.has(change.id)) found.set(change.id, change);
    }
    if (next === null) return { changes: [...found.values()], refused };
    if (cursors.has(next))
      throw responseError(foreignError("its pages have no end: a cursor comes again"), response);
    if (page + 1 >= MOST_PAGES) throw responseError(tooManyPagesError(MOST_PAGES), response);
    cursors.add(next);
    cursor = next;
  }
}

function fromWire(
  wire: unknown,
  { start, end, nth }: Interval & { readonly nth: number },
): LoggedChange | string {
  const { data, error } = needed.safeParse(wire);
  if (data === undefined) {
    const path = error.issues[0]?.path ?? [];
    const value = path.reduce<unknown>((of, key) => (of as Record<PropertyKey, unknown> | null)?.[key], wire);
    return `${[nth, ...path].join(".")} is ${describeValue(value)}`;
  }
  const { time: at } = data;
  if (at < start || at > end) return `${nth}.time is ${at}, outside the requested time`;
  const { status_id, actor, unmapped } = optional.parse(wire);
  const { workspace_id, operation_succeeded } = unmapped?.original_audit_log ?? {};
  const said = new Set([STATUS.get(status_id ?? 0), operation_succeeded ?? undefined]);
  said.delete(undefined);
  return {
    id: data.metadata.uid,
    operation: data.api.operation,
    at,
    workspaceId: workspace_id ?? null,
    userId: actor?.user.uid ?? null,
    hasSucceeded: said.size === 1 ? ([...said][0] ?? null) : null,
  };
}

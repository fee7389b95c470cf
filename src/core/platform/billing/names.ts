import { z } from "zod";
import type { PlatformHttp, RequestOptions } from "../http/http.ts";
import { getJson, readJson, responseError } from "../http/read-body.ts";
import { foreignError, tooManyPagesError } from "../parse/response-error.ts";
import { describeValue, fromWireId, fromWireName, fromWireTime } from "../parse/wire-values.ts";

/** Names of API keys, sandboxes or snapshots in lists of the platform. Usage has only their ids. */
export interface ListedNames {
  readonly names: readonly { readonly id: string; readonly name: string }[];
  readonly refused: readonly string[];
  /** Only lists of API keys have these. */
  readonly keys?: readonly WireKey[];
}

/** Instants are epoch ms. Null: the list does not say, or has no instant there. */
interface WireKey {
  readonly id: string;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
  readonly createdBy: string | null;
}

type OfWorkspace = RequestOptions & { readonly workspaceId: string };

const fields = z.record(z.string(), z.unknown());
const list = z.array(z.unknown());
/** It is a guess that both lists of sandboxes have this form (docs/platform.md, Names). */
const pageSchema = z.union([
  list.transform((items) => ({ items, next_cursor: null })),
  z.object({ items: list, next_cursor: z.string().min(1).nullish() }),
]);
const MOST_PAGES = 1000;
/** Only `dim_user` shows addresses, so a description with an address is no name. */
export const ADDRESS = /[^\s@]@[^\s@]/;

/** An API key's id is its short key. Errors: those of `get`; `response_invalid` if the response is no list. */
export async function organizationKeys(http: PlatformHttp, { signal }: RequestOptions): Promise<ListedNames> {
  return keysOf(await getJson(http, { path: "/api/v1/orgs/current/service-keys", signal }, list));
}

export async function workspaceKeys(
  http: PlatformHttp,
  { workspaceId, signal }: OfWorkspace,
): Promise<ListedNames> {
  return keysOf(await getJson(http, { path: "/api/v1/api-key", workspaceId, signal }, list));
}

/** Sandboxes (`boxes`) or snapshots of a workspace. `sendMore` sends each request but the first. */
export async function workspaceSandboxes(
  http: PlatformHttp,
  {
    kind,
    workspaceId,
    signal,
    sendMore,
  }: OfWorkspace & {
    readonly kind: "boxes" | "snapshots";
    readonly sendMore: <T>(send: () => Promise<T>) => Promise<T>;
  },
): Promise<ListedNames> {
  const items: unknown[] = [];
  const cursors = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const query = new URLSearchParams(cursor === undefined ? {} : { cursor });
    const send = () => http.get({ path: `/api/v2/sandboxes/${kind}`, query, workspaceId, signal });
    const response = await (cursor === undefined ? send() : sendMore(send));
    const page = await readJson(response, pageSchema);
    items.push(...page.items);
    if (page.next_cursor == null) return namesOf(items, { id: "id", name: "name" });
    cursor = page.next_cursor;
    if (cursors.has(cursor))
      throw responseError(foreignError("its pages have no end: a cursor comes again"), response);
    cursors.add(cursor);
    if (cursors.size >= MOST_PAGES) throw responseError(tooManyPagesError(MOST_PAGES), response);
  }
}

const wireInstant = z
  .string()
  .nullish()
  .catch(null)
  .transform((wire) => fromWireTime(wire ?? "") ?? null);
const keySchema = z
  .object({
    short_key: z.string().min(1),
    last_used_at: wireInstant,
    expires_at: wireInstant,
    created_by: z.string().nullish().catch(null),
  })
  .transform(({ short_key, last_used_at: lastUsedAt, expires_at: expiresAt, created_by }): WireKey => {
    const by = fromWireName(created_by);
    return {
      id: fromWireId(short_key) ?? "",
      lastUsedAt,
      expiresAt,
      createdBy: by === null || ADDRESS.test(by) ? null : by,
    };
  });

function keysOf(items: readonly unknown[]): ListedNames {
  const keys = items.flatMap((wire) => keySchema.safeParse(wire).data ?? []);
  return { ...namesOf(items, { id: "short_key", name: "description" }), keys };
}

function namesOf(items: readonly unknown[], field: { id: string; name: string }): ListedNames {
  const names = new Map<string, string>();
  const refused: string[] = [];
  items.forEach((wire, nth) => {
    const item = fields.safeParse(wire).data ?? {};
    const [given, called = null] = [item[field.id], item[field.name]];
    const id = typeof given === "string" && given !== "" ? fromWireId(given) : undefined;
    if (id === undefined) refused.push(`${nth}.${field.id} is ${describeValue(given)}`);
    else if (called !== null && typeof called !== "string")
      refused.push(`${nth}.${field.name} is ${describeValue(called)}`);
    else {
      const name = fromWireName(called);
      if (name !== null && !ADDRESS.test(name) && !names.has(id)) names.set(id, name);
    }
  });
  return { names: [...names].map(([id, name]) => ({ id, name })), refused };
}

import { z } from "zod";
import { PlatformError } from "../../errors.ts";
import type { PlatformHttp } from "../http/http.ts";
import { readJson } from "../http/json-document.ts";
import { fromWireId, fromWireName } from "../parse/wire-values.ts";

export interface WorkspaceListing {
  readonly id: string;
  readonly displayName: string | null;
  readonly isDeleted: boolean;
}

export interface Organization {
  readonly id: string;
  readonly displayName: string | null;
}

const text = z.string().nullish();
const workspacesSchema = z.array(
  z.object({ id: z.string().min(1), display_name: text, is_deleted: z.boolean().nullish() }),
);
const organizationSchema = z.object({ id: z.string().min(1), display_name: text });
const infoSchema = z.object({ version: text });

interface Asking {
  readonly signal?: AbortSignal | undefined;
}

/** `GET /api/v1/workspaces` (platform-facts.md, Requests). */
export async function listWorkspaces(
  http: PlatformHttp,
  { signal, includeDeleted }: Asking & { readonly includeDeleted?: boolean | undefined },
): Promise<WorkspaceListing[] | undefined> {
  const query = new URLSearchParams(includeDeleted === true ? { include_deleted: "true" } : {});
  const listed = await readDocument({
    http,
    path: "/api/v1/workspaces",
    query,
    schema: workspacesSchema,
    signal,
  });
  return listed?.map((one) => ({
    id: requireId(one.id),
    displayName: fromWireName(one.display_name),
    isDeleted: one.is_deleted === true,
  }));
}

/** `GET /api/v1/orgs/current`. */
export async function currentOrganization(
  http: PlatformHttp,
  { signal }: Asking,
): Promise<Organization | undefined> {
  const found = await readDocument({
    http,
    path: "/api/v1/orgs/current",
    schema: organizationSchema,
    signal,
  });
  return found && { id: requireId(found.id), displayName: fromWireName(found.display_name) };
}

/** `GET /api/v1/info`. */
export async function serverInfo(
  http: PlatformHttp,
  { signal }: Asking,
): Promise<{ version: string | null } | undefined> {
  const found = await readDocument({ http, path: "/api/v1/info", schema: infoSchema, signal });
  return found && { version: fromWireName(found.version) };
}

function requireId(text: string): string {
  return fromWireId(text) ?? text.toWellFormed();
}

/** A small document; undefined where the server does not have it (404, 405). */
async function readDocument<T>(input: {
  http: PlatformHttp;
  path: string;
  query?: URLSearchParams;
  schema: z.ZodType<T>;
  signal: AbortSignal | undefined;
}): Promise<T | undefined> {
  const { http, path, query, schema, signal } = input;
  const answer = await http
    .get({ path, accept: "application/json", signal, ...(query === undefined ? {} : { query }) })
    .catch((error: unknown) => {
      if (error instanceof PlatformError && (error.status === 404 || error.status === 405)) return undefined;
      throw error;
    });
  return answer && readJson(answer, schema);
}

import { z } from "zod";
import { PlatformError } from "../../errors.ts";
import type { Asking, PlatformHttp } from "../http/http.ts";
import { getJson } from "../http/json-document.ts";
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
const id = z
  .string()
  .min(1)
  .transform((wire) => fromWireId(wire) ?? wire.toWellFormed());
const workspacesSchema = z.array(z.object({ id, display_name: text, is_deleted: z.boolean().nullish() }));
const organizationSchema = z.object({ id, display_name: text });
const infoSchema = z.object({ version: text });

/** `GET /api/v1/workspaces` (Requests in docs/platform.md). */
export async function listWorkspaces(
  http: PlatformHttp,
  { signal, includeDeleted }: Asking & { readonly includeDeleted?: boolean | undefined },
): Promise<WorkspaceListing[] | undefined> {
  const query = new URLSearchParams(includeDeleted === true ? { include_deleted: "true" } : {});
  const listed = await optional(
    getJson(http, { path: "/api/v1/workspaces", query, signal }, workspacesSchema),
  );
  return listed?.map((one) => ({
    id: one.id,
    displayName: fromWireName(one.display_name),
    isDeleted: one.is_deleted === true,
  }));
}

/** `GET /api/v1/orgs/current`. */
export async function currentOrganization(
  http: PlatformHttp,
  { signal }: Asking,
): Promise<Organization | undefined> {
  const found = await optional(getJson(http, { path: "/api/v1/orgs/current", signal }, organizationSchema));
  return found && { id: found.id, displayName: fromWireName(found.display_name) };
}

/** `GET /api/v1/info`. */
export async function serverInfo(
  http: PlatformHttp,
  { signal }: Asking,
): Promise<{ version: string | null } | undefined> {
  const found = await optional(getJson(http, { path: "/api/v1/info", signal }, infoSchema));
  return found && { version: fromWireName(found.version) };
}

/** Undefined if the server does not have the document (404, 405). */
function optional<T>(document: Promise<T>): Promise<T | undefined> {
  return document.catch((error: unknown) => {
    if (error instanceof PlatformError && (error.status === 404 || error.status === 405)) return undefined;
    throw error;
  });
}

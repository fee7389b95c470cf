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
/** What of a server names a self-hosted installation. Only that it is there counts. */
const infoSchema = z.object({
  version: text,
  billing_installation_id: z.unknown().optional(),
  license_expiration_time: z.unknown().optional(),
});

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

/** `GET /api/v1/info`. Not every self-hosted server says that it is one. */
export async function serverInfo(
  http: PlatformHttp,
  { signal }: Asking,
): Promise<{ version: string | null; isSelfHosted?: true } | undefined> {
  const found = await optional(getJson(http, { path: "/api/v1/info", signal }, infoSchema));
  if (found === undefined) return undefined;
  const isSelfHosted = [found.billing_installation_id, found.license_expiration_time].some(
    (named) => typeof named === "string" && named !== "",
  );
  return { version: fromWireName(found.version), ...(isSelfHosted ? { isSelfHosted } : {}) };
}

/** Undefined if the server does not have the document (404, 405). */
function optional<T>(document: Promise<T>): Promise<T | undefined> {
  return document.catch((error: unknown) => {
    if (error instanceof PlatformError && (error.status === 404 || error.status === 405)) return undefined;
    throw error;
  });
}

import { z } from "zod";
import type { ResourceTag, WorkspaceTags } from "../../domain/usage/resource-tag.ts";
import { unlessAbsent } from "../http/errors.ts";
import type { PlatformHttp, RequestOptions } from "../http/http.ts";
import { getJson } from "../http/read-body.ts";
import { describeValue, fromWireId, fromWireName, fromWireTime } from "../parse/wire-values.ts";
import { fleetLimitOf, type WireLine } from "./statement.ts";

interface WorkspaceListing {
  readonly id: string;
  readonly displayName: string | null;
  readonly isDeleted: boolean;
}

export interface WireLimit {
  /** Undefined: the response names no workspace. */
  readonly workspaceId: string | undefined;
  readonly limitType: string;
  /** Null: no limit. */
  readonly value: number | null;
}

export interface WireRejection {
  readonly isRejecting: boolean;
  readonly limitType: string | null;
  readonly value: number | null;
}

export interface WireBillingPeriod {
  /** Epoch ms; null: unknown. */
  readonly endsAt: number | null;
  readonly planTier: string | null;
  readonly planStartedAt: number | null;
  readonly planEndsAt: number | null;
  readonly fleetLimit: readonly WireLine[];
}

type OfWorkspace = RequestOptions & { readonly workspaceId: string };

const text = z.string().nullish();
const displayed = text.transform(fromWireName);
const id = z
  .string()
  .min(1)
  .transform((wire) => fromWireId(wire) ?? wire.toWellFormed());
const organizationSchema = z
  .object({ id, display_name: displayed })
  .transform(({ id, display_name: displayName }) => ({ id, displayName }));
const workspacesSchema = z.array(
  z
    .object({ id, display_name: displayed, is_deleted: z.boolean().nullish() })
    .transform(({ id, display_name: displayName, is_deleted }): WorkspaceListing => {
      return { id, displayName, isDeleted: is_deleted === true };
    }),
);
const statisticsSchema = z.object({ tenant_id: id });
const infoSchema = z.object({
  version: displayed,
  /** Either field marks a self-hosted installation, whatever its value. */
  billing_installation_id: z.unknown().optional(),
  license_expiration_time: z.unknown().optional(),
});

const amount = z
  .int()
  .nonnegative()
  .nullish()
  .transform((value) => value ?? null);
const type = z.string().min(1).max(200);
const keptId = z
  .string()
  .min(1)
  .refine((wire) => fromWireId(wire) !== undefined, "an id that cannot be kept")
  .nullish();
const limitsSchema = z
  .array(z.object({ limit_type: type, limit_value: amount, tenant_id: keptId, scope: type.nullish() }))
  .refine((all) => {
    const whole = all.filter(({ scope }) => isOfWorkspace(scope));
    return new Set(whole.map((one) => JSON.stringify([one.tenant_id, one.limit_type]))).size === whole.length;
  }, "it names a limit twice");
/**
 * True for limits of a whole workspace, not per project, user or key. Older servers name no scope: all their limits are of
 * workspaces.
 */
const isOfWorkspace = (scope: string | null | undefined) => (scope ?? "workspace") === "workspace";
const rejectionSchema = z.object({
  in_reject_set: z.boolean(),
  usage_limit_type: type.nullish(),
  tenant_limit: amount,
});
const instant = z
  .string()
  .refine((wire) => fromWireTime(wire) !== undefined, "not a timestamp")
  .nullish()
  .transform((wire) => (wire ? (fromWireTime(wire) ?? null) : null));
const billingSchema = z
  .looseObject({})
  // Otherwise any other object would pass for an unknown period.
  .refine(
    (wire) => "end_of_billing_period" in wire || "current_plan" in wire,
    "it has neither end_of_billing_period nor current_plan",
  )
  .pipe(
    z.looseObject({
      end_of_billing_period: instant,
      current_plan: z.object({ tier: displayed, started_on: instant, ends_on: instant }).nullish(),
    }),
  );

export async function listWorkspaces(
  http: PlatformHttp,
  { signal, includeDeleted }: RequestOptions & { readonly includeDeleted?: boolean | undefined },
): Promise<WorkspaceListing[] | undefined> {
  const query = new URLSearchParams(includeDeleted === true ? { include_deleted: "true" } : {});
  return unlessAbsent(getJson(http, { path: "/api/v1/workspaces", query, signal }, workspacesSchema));
}

export function currentOrganization(http: PlatformHttp, { signal }: RequestOptions) {
  return unlessAbsent(getJson(http, { path: "/api/v1/orgs/current", signal }, organizationSchema));
}

/** Not every self-hosted server says that it is self-hosted. */
export async function serverInfo(
  http: PlatformHttp,
  { signal }: RequestOptions,
): Promise<{ version: string | null; isSelfHosted?: true } | undefined> {
  const found = await unlessAbsent(getJson(http, { path: "/api/v1/info", signal }, infoSchema));
  if (found === undefined) return undefined;
  const isSelfHosted = [found.billing_installation_id, found.license_expiration_time].some(
    (named) => typeof named === "string" && named !== "",
  );
  return { version: found.version, ...(isSelfHosted ? { isSelfHosted } : {}) };
}

/**
 * Returns the workspace that the statistics of `workspaceId` name. If the server ignores the header, this is another one.
 * Undefined if the server has no statistics.
 */
export async function workspaceOfStatistics(
  http: PlatformHttp,
  { workspaceId, signal }: OfWorkspace,
): Promise<string | undefined> {
  const path = "/api/v1/workspaces/current/stats";
  return (await unlessAbsent(getJson(http, { path, workspaceId, signal }, statisticsSchema)))?.tenant_id;
}

export function organizationLimits(http: PlatformHttp, { signal }: RequestOptions): Promise<WireLimit[]> {
  return limitsAt(http, { path: "/api/v1/usage-limits/org", signal });
}

export function workspaceLimits(
  http: PlatformHttp,
  { workspaceId, signal }: OfWorkspace,
): Promise<WireLimit[]> {
  return limitsAt(http, { path: "/api/v1/usage-limits", workspaceId, signal });
}

async function limitsAt(
  http: PlatformHttp,
  request: RequestOptions & { readonly path: string; readonly workspaceId?: string },
): Promise<WireLimit[]> {
  const limits = await getJson(http, request, limitsSchema);
  return limits.map(({ limit_type: limitType, limit_value: value, tenant_id, scope }) => ({
    // A limit per project, user or key gets another name, so that it is not compared: its use is unknown.
    limitType: isOfWorkspace(scope) ? limitType : `${limitType} per ${scope}`,
    value,
    workspaceId: tenant_id == null ? undefined : fromWireId(tenant_id),
  }));
}

export async function workspaceRejection(
  http: PlatformHttp,
  { workspaceId, signal }: OfWorkspace,
): Promise<WireRejection> {
  const path = "/api/v1/workspaces/current/usage_limits";
  const found = await getJson(http, { path, workspaceId, signal }, rejectionSchema);
  return {
    isRejecting: found.in_reject_set,
    limitType: found.usage_limit_type ?? null,
    value: found.tenant_limit,
  };
}

export async function billingPeriod(
  http: PlatformHttp,
  { signal }: RequestOptions,
): Promise<WireBillingPeriod> {
  const found = await getJson(http, { path: "/api/v1/orgs/current/billing", signal }, billingSchema);
  const { tier = null, started_on = null, ends_on = null } = found.current_plan ?? {};
  return {
    endsAt: found.end_of_billing_period,
    planTier: tier,
    planStartedAt: started_on,
    planEndsAt: ends_on,
    fleetLimit: fleetLimitOf(found),
  };
}

const PATH = "/api/v1/workspaces/current/taggings";

const TAGGED = { projects: "project", deployments: "deployment", sandboxes: "sandbox" } as const;

const responseSchema = z.array(z.unknown());
const fields = z.record(z.string(), z.unknown());

export async function workspaceTags(
  http: PlatformHttp,
  { workspaceId, signal }: RequestOptions & { readonly workspaceId: string },
): Promise<WorkspaceTags> {
  const response = await getJson(http, { path: PATH, workspaceId, signal }, responseSchema);
  const [tags, refused]: [ResourceTag[], string[]] = [[], []];
  response.forEach((wire, nth) => {
    const tag = fields.safeParse(wire).data ?? {};
    const textOf = (of: Record<string, unknown>, field: string, place: string): string | undefined => {
      const given = of[field];
      const kept = typeof given === "string" && given !== "" ? fromWireId(given) : undefined;
      if (kept === undefined) refused.push(`${place}.${field} is ${describeValue(given)}`);
      // Ids are in lower case. Other texts keep their case.
      return kept === undefined || field === "resource_id" ? kept : String(given);
    };
    const [key, value] = [textOf(tag, "tag_key", `${nth}`), textOf(tag, "tag_value", `${nth}`)];
    if (key === undefined || value === undefined) return;
    const resources = fields.safeParse(tag.resources ?? {}).data;
    for (const [name, dimension] of Object.entries(TAGGED)) {
      const place = `${nth}.resources.${name}`;
      const listed = resources === undefined ? undefined : (resources[name] ?? []);
      if (!Array.isArray(listed)) {
        refused.push(`${place} is ${describeValue(listed)}`);
        continue;
      }
      listed.forEach((resource: unknown, i) => {
        const resourceId = textOf(fields.safeParse(resource).data ?? {}, "resource_id", `${place}.${i}`);
        if (resourceId !== undefined) tags.push({ dimension, resourceId, key, value });
      });
    }
  });
  return { tags, refused };
}

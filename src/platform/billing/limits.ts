import { z } from "zod";
import type { Asking, PlatformHttp } from "../http/http.ts";
import { getJson } from "../http/json-document.ts";
import { fromWireId, fromWireName, fromWireTime } from "../parse/wire-values.ts";

/** A limit of usage that the platform enforces (Bill in docs/platform.md). */
export interface WireLimit {
  /** Undefined: the answer names none. */
  readonly workspaceId: string | undefined;
  readonly limitType: string;
  /** Null: no limit. */
  readonly value: number | null;
}

/** Whether traces of a workspace are rejected, and because of which limit. */
export interface WireRejection {
  readonly isRejecting: boolean;
  readonly limitType: string | null;
  readonly value: number | null;
}

export interface WireBillingPeriod {
  /** Epoch milliseconds; null: the platform does not tell. */
  readonly endsAt: number | null;
  readonly planTier: string | null;
  readonly planStartedAt: number | null;
  readonly planEndsAt: number | null;
}

const value = z.int().nonnegative().nullish();
const type = z.string().min(1).max(200);
const id = z
  .string()
  .min(1)
  .refine((wire) => fromWireId(wire) !== undefined, "an id that cannot be kept")
  .nullish();
const limitsSchema = z
  .array(z.object({ limit_type: type, limit_value: value, tenant_id: id }))
  .refine(
    (all) => new Set(all.map((one) => JSON.stringify([one.tenant_id, one.limit_type]))).size === all.length,
    "it names a limit twice",
  );
const rejectionSchema = z.object({
  in_reject_set: z.boolean(),
  usage_limit_type: type.nullish(),
  tenant_limit: value,
});
const instant = z
  .string()
  .refine((wire) => fromWireTime(wire) !== undefined, "not a timestamp")
  .nullish();
const billingSchema = z.object({
  end_of_billing_period: instant,
  current_plan: z.object({ tier: z.string().nullish(), started_on: instant, ends_on: instant }).nullish(),
});

/** `GET /api/v1/usage-limits/org`: those of the organization and its workspaces. */
export async function organizationLimits(http: PlatformHttp, { signal }: Asking): Promise<WireLimit[]> {
  return limitsAt(http, { path: "/api/v1/usage-limits/org", signal });
}

/** `GET /api/v1/usage-limits`: those of one workspace. */
export async function workspaceLimits(
  http: PlatformHttp,
  { workspaceId, signal }: Asking & { readonly workspaceId: string },
): Promise<WireLimit[]> {
  return limitsAt(http, { path: "/api/v1/usage-limits", workspaceId, signal });
}

async function limitsAt(
  http: PlatformHttp,
  request: Asking & { readonly path: string; readonly workspaceId?: string },
): Promise<WireLimit[]> {
  const limits = await getJson(http, request, limitsSchema);
  return limits.map(({ limit_type: limitType, limit_value, tenant_id }) => ({
    ...{ limitType, value: limit_value ?? null },
    workspaceId: tenant_id === undefined || tenant_id === null ? undefined : fromWireId(tenant_id),
  }));
}

/** `GET /api/v1/workspaces/current/usage_limits`. */
export async function workspaceRejection(
  http: PlatformHttp,
  { workspaceId, signal }: Asking & { readonly workspaceId: string },
): Promise<WireRejection> {
  const path = "/api/v1/workspaces/current/usage_limits";
  const found = await getJson(http, { path, workspaceId, signal }, rejectionSchema);
  return {
    isRejecting: found.in_reject_set,
    limitType: found.usage_limit_type ?? null,
    value: found.tenant_limit ?? null,
  };
}

/** `GET /api/v1/orgs/current/billing`: the period that is under way, and the plan. */
export async function billingPeriod(http: PlatformHttp, { signal }: Asking): Promise<WireBillingPeriod> {
  const found = await getJson(http, { path: "/api/v1/orgs/current/billing", signal }, billingSchema);
  const at = (wire: string | null | undefined) => (wire ? (fromWireTime(wire) ?? null) : null);
  return {
    endsAt: at(found.end_of_billing_period),
    planTier: fromWireName(found.current_plan?.tier),
    planStartedAt: at(found.current_plan?.started_on),
    planEndsAt: at(found.current_plan?.ends_on),
  };
}

import { z } from "zod";
import { type Drift, METRICS, type Metric } from "../engine/bill.ts";
import { workspaceOf } from "../engine/organisation.ts";
import { checked } from "../http/checked.ts";
import { noRoute } from "../http/refusal.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import type { World } from "../world.ts";

const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const noQuery = z.strictObject({});
const usageQuery = z.strictObject({
  starting_on: instant,
  ending_before: instant,
  on_current_plan: z.enum(["true", "false"]).default("true"),
});

/**
 * The bill's other side (docs/platform.md, Bill: documented; limits and the billing period seen in client code). All of it is on the
 * level of the organisation, so it may need more than usage does (documented): here `organization:manage` (our guess).
 */
export function bill(world: World): Route[] {
  const route = <Q>(
    path: string,
    needs: Route["needs"],
    query: z.ZodType<Q>,
    answer: (query: Q, exchange: Exchange) => unknown,
  ): Route => ({
    method: "GET",
    path,
    needs,
    handle(exchange) {
      if (!world.settings.bill) throw noRoute("GET", path);
      return json(answer(checked(query, exchange.query, "query"), exchange));
    },
  });
  return [
    // One total a metric for the time that is asked for, and none for a metric without usage (our guess).
    route("/api/v1/orgs/current/billing/usage", "organization:manage", usageQuery, (asked) =>
      world.bill
        .totals({ start: asked.starting_on, end: asked.ending_before })
        .filter(({ groups }) => groups.size > 0)
        .map(({ metric, start, end, value, groups }) => ({
          customer_id: world.organisation.id,
          billable_metric_id: METRICS[metric].id,
          billable_metric_name: METRICS[metric].name,
          start_timestamp: new Date(start).toISOString(),
          end_timestamp: new Date(end).toISOString(),
          value,
          groups: Object.fromEntries(groups),
        })),
    ),
    route("/api/v1/orgs/current/billing", "organization:manage", noQuery, () => {
      const { end } = world.bill.period();
      return {
        end_of_billing_period: new Date(end).toISOString(),
        current_plan: {
          tier: world.bill.tier,
          started_on: new Date(world.ledger.dataStart).toISOString(),
          ends_on: null,
        },
      };
    }),
    // The workspace is the one of `X-Tenant-Id`; without it the first that the key reads (our guess).
    route("/api/v1/workspaces/current/usage_limits", "key", noQuery, (_, exchange) => {
      const id = tenantOf(world, exchange);
      const type = world.bill.rejecting.get(id);
      const limit = world.bill.limits.find((one) => one.workspaceId === id && one.limitType === type);
      return {
        in_reject_set: type !== undefined,
        usage_limit_type: type ?? null,
        tenant_limit: limit?.value ?? null,
      };
    }),
    route("/api/v1/usage-limits", "key", noQuery, (_, exchange) => {
      const id = tenantOf(world, exchange);
      return limits(world, (of) => of === id);
    }),
    // Those of the organisation and of all of its workspaces (our guess).
    route("/api/v1/usage-limits/org", "organization:manage", noQuery, () => limits(world, () => true)),
  ];
}

function tenantOf({ organisation, access }: World, { headers }: Exchange): string {
  const named = headers["x-tenant-id"];
  if (typeof named === "string") return named;
  return organisation.workspaces.find((one) => access.canRead(one))?.id ?? "";
}

function limits(
  { bill: { limits: all } }: World,
  isMeant: (workspaceId: string | null) => boolean,
): object[] {
  return all
    .filter(({ workspaceId }) => isMeant(workspaceId))
    .map(({ workspaceId, limitType, value }) => ({
      limit_type: limitType,
      limit_value: value,
      tenant_id: workspaceId,
    }));
}

const metrics = Object.keys(METRICS) as [Metric, ...Metric[]];
const bodies = {
  drift: z.strictObject({
    metric: z.enum(metrics).default("traces"),
    /** Need not be one of the organisation: a contract may join several. */
    workspace_id: z.string().min(1),
    at: instant,
    delta: z.int().nullable(),
  }),
  limits: z.array(
    z.strictObject({
      workspace_id: z.string().nullable(),
      limit_type: z.string(),
      limit_value: z.number().nullable(),
    }),
  ),
  period: z.strictObject({ day: z.int().min(1).max(28) }),
  rejecting: z.strictObject({ limit_type: z.string().nullable() }),
  nothing: z.strictObject({}).default({}),
};

/** The stand-in's own routes of the bill: what makes the second meter drift, its limits and periods. */
export function billAdmin(world: World): Route[] {
  const route = <T>(
    method: Route["method"],
    path: string,
    body: z.ZodType<T>,
    answer: (body: T, params: Exchange["params"]) => void,
  ): Route => ({
    method,
    path: `/__standin${path}`,
    needs: "nothing",
    handle: ({ body: given, params }) => {
      answer(checked(body, given ?? undefined), params);
      return json({ ok: true });
    },
  });
  return [
    route("POST", "/provider-drift", bodies.drift, ({ metric, workspace_id, at, delta }) => {
      const drift: Drift = { metric, workspaceId: workspace_id, at, delta };
      world.bill.drifts.push(drift);
    }),
    route("DELETE", "/provider-drift", bodies.nothing, () => {
      world.bill.drifts.length = 0;
    }),
    route("POST", "/usage-limits", bodies.limits, (given) => {
      const entered = given.map(({ workspace_id, limit_type, limit_value }) => ({
        workspaceId: workspace_id,
        limitType: limit_type,
        value: limit_value,
      }));
      world.bill.limits.splice(0, world.bill.limits.length, ...entered);
    }),
    route("PATCH", "/billing-period", bodies.period, ({ day }) => {
      world.bill.periodDay = day;
    }),
    route("PATCH", "/rejecting/:id", bodies.rejecting, ({ limit_type }, { id = "" }) => {
      const workspace = workspaceOf(world.organisation, id);
      if (limit_type === null) world.bill.rejecting.delete(workspace.id);
      else world.bill.rejecting.set(workspace.id, limit_type);
    }),
  ];
}

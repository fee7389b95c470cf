import { z } from "zod";
import { METRICS } from "../engine/bill.ts";
import { checked, noRoute } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import { type Exchange, json, type Route } from "../http/route.ts";

const noQuery = z.strictObject({});
const workspaceQuery = z.strictObject({ include_deleted: z.enum(["true", "false"]).default("false") });
const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const usageQuery = z.strictObject({
  starting_on: instant,
  ending_before: instant,
  on_current_plan: z.enum(["true", "false"]).default("true"),
});

/**
 * docs/platform.md, Requests (documented and seen) and its Bill (documented; limits and billing period: seen in client code).
 * The settings `listing` and `bill` remove these routes.
 */
export function organisationRoutes(world: World): Route[] {
  const route = <Q>(
    setting: "listing" | "bill",
    path: string,
    needs: Route["needs"],
    query: z.ZodType<Q>,
    response: (query: Q, exchange: Exchange) => unknown,
  ): Route => ({
    method: "GET",
    path,
    needs,
    handle(exchange) {
      if (!world.settings[setting]) throw noRoute("GET", path);
      return json(response(checked(query, exchange.query, "query"), exchange));
    },
  });
  return [
    route("listing", "/api/v1/workspaces", "key", workspaceQuery, ({ include_deleted }) =>
      world.organisation.workspaces
        .filter((one) => world.access.isListed(one) && (include_deleted === "true" || one.deletedAt === null))
        .map((one) => ({
          id: one.id,
          display_name: one.name,
          is_deleted: one.deletedAt !== null,
          organization_id: world.organisation.id,
          created_at: new Date(one.createdAt).toISOString(),
        })),
    ),
    // Documented. Counts that the stand-in lacks are zero. `Access` refuses a workspace that the key cannot read (our guess).
    route("listing", "/api/v1/workspaces/current/stats", "workspace", noQuery, (_, exchange) => {
      const tenant_id = tenantOf(world, exchange);
      const { projects, deployments } = world.organisation;
      return {
        tenant_id,
        tracer_session_count: projects.filter((one) => one.workspace.id === tenant_id).length,
        deployment_count: deployments.filter((one) => one.workspace.id === tenant_id).length,
        dataset_count: 0,
        repo_count: 0,
        annotation_queue_count: 0,
        dashboards_count: 0,
      };
    }),
    // organization:read is our guess.
    route("listing", "/api/v1/orgs/current", "organization:read", noQuery, () => {
      const { id, name } = world.organisation;
      const { engineLimit } = world.statement;
      return { id, display_name: name, engine_lcu_spend_limit_monthly: engineLimit };
    }),
    // No key is needed. Only self-hosted servers have an installation and a license (documented).
    route("listing", "/api/v1/info", "nothing", noQuery, () => {
      const { serverVersion: version, hosting } = world.settings;
      if (hosting === "cloud") return { version, license_expiration_time: null };
      const billing_installation_id = world.organisation.id.replace(/^......../, "00000016");
      return { version, billing_installation_id, license_expiration_time: "2099-12-31T00:00:00Z" };
    }),
    // May need more than usage (documented): `organization:manage` (our guess). One total for each metric with usage (our
    // guess).
    route("bill", "/api/v1/orgs/current/billing/usage", "organization:manage", usageQuery, (requested) =>
      world.bill
        .totals({ start: requested.starting_on, end: requested.ending_before })
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
    route("bill", "/api/v1/orgs/current/billing", "organization:manage", noQuery, () => {
      const { end } = world.bill.period();
      return {
        end_of_billing_period: new Date(end).toISOString(),
        fleet_lcu_spend_limit_monthly: world.statement.fleetLimit,
        current_plan: {
          tier: "plus",
          started_on: new Date(world.ledger.start).toISOString(),
          ends_on: null,
        },
      };
    }),
    route("bill", "/api/v1/workspaces/current/usage_limits", "key", noQuery, (_, exchange) => {
      const id = tenantOf(world, exchange);
      const type = world.bill.rejecting.get(id);
      const limit = world.bill.limits.find((one) => one.workspaceId === id && one.limitType === type);
      return {
        in_reject_set: type !== undefined,
        usage_limit_type: type ?? null,
        tenant_limit: limit?.value ?? null,
      };
    }),
    route("bill", "/api/v1/usage-limits", "key", noQuery, (_, exchange) => {
      const id = tenantOf(world, exchange);
      return limits(world, (of) => of === id);
    }),
    // All limits of the organization and its workspaces (our guess).
    route("bill", "/api/v1/usage-limits/org", "organization:manage", noQuery, () =>
      limits(world, () => true),
    ),
  ];
}

/** Default: the first workspace that the key reads (our guess). */
export function tenantOf({ organisation, access }: World, { headers }: Pick<Exchange, "headers">): string {
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
    .map(({ workspaceId, limitType, value, scope }) => ({
      limit_type: limitType,
      limit_value: value,
      tenant_id: workspaceId,
      ...(scope === undefined ? {} : { scope }),
    }));
}

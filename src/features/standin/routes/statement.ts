import { z } from "zod";
import { checked, noRoute } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import { type Exchange, json, type Route } from "../http/route.ts";

const membersQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(500).default(50),
  offset: z.coerce.number().int().min(0).default(0),
});
const policiesQuery = z.strictObject({ policy_type: z.literal("spend_cap").optional() });
const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const spendQuery = z.strictObject({ start: instant, end: instant });

/** docs/platform.md, Statement. Permissions are our guesses, but for policies, whose permission is documented. */
export function statement(world: World): Route[] {
  const { organisation, settings } = world;
  const route = <Q>(
    path: string,
    query: z.ZodType<Q>,
    { isThere, response }: { isThere: () => boolean; response: (query: Q) => unknown },
  ): Route => ({
    method: "GET",
    path,
    needs: "organization:read",
    handle(exchange: Exchange) {
      if (!isThere()) throw noRoute("GET", path);
      return json(response(checked(query, exchange.query, "query")));
    },
  });
  return [
    route("/api/v1/orgs/current/members/active", membersQuery, {
      isThere: () => settings.bill,
      response: ({ limit, offset }) =>
        organisation.users.slice(offset, offset + limit).map(({ id, email }) => ({
          id,
          organization_id: organisation.id,
          created_at: new Date(world.ledger.start).toISOString(),
          user_id: id,
          ls_user_id: id,
          read_only: false,
          email,
          is_disabled: false,
        })),
    }),
    route("/api/v1/platform/gateway-policies", policiesQuery, {
      isThere: () => settings.bill,
      response: () =>
        world.statement.policies.map(({ id, matchers, windows, spendUsd }) => ({
          id,
          name: "a cap",
          policy_type: "spend_cap",
          action: "block",
          enabled: true,
          subject_matchers: matchers,
          config:
            windows.length === 1
              ? { window: windows[0], limit_usd: 100 }
              : { version: 2, limits: windows.map((window) => ({ window, limit_usd: 100 })) },
          organization_id: organisation.id,
          // Go omits empty fields (our guess).
          ...(spendUsd === null ? {} : { current_spend_usd: spendUsd }),
        })),
    }),
    route("/issues-agent/lcu-spend", spendQuery, {
      isThere: () => settings.engine === "on",
      response: ({ start, end }) => ({
        organization_id: organisation.id,
        period_start: new Date(start).toISOString(),
        period_end: new Date(end).toISOString(),
        resolved_monthly_spend_limit_lcu: world.statement.engineEnforcedLimit,
        items: world.statement.engine.map(({ workspaceId, projectId, lcu, unpricedRows }) => ({
          tenant_id: workspaceId,
          session_id: projectId,
          lcu_total: lcu,
          lcu_unpriced_row_count: unpricedRows,
        })),
      }),
    }),
  ];
}

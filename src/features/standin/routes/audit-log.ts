import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";

const PATH = "/api/v1/audit-logs";
const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const OPERATION = /^[a-z_]+$/;
const query = z.strictObject({
  start_time: instant,
  end_time: instant,
  limit: z.coerce.number().int().min(1).max(100).default(10),
  cursor: z.string().optional(),
  workspace_id: z.guid().optional(),
  operations: z.union([z.string().regex(OPERATION), z.array(z.string().regex(OPERATION))]).optional(),
});

/** docs/platform.md, Audit log. */
export function auditLog(world: World): Route[] {
  return [
    {
      method: "GET",
      path: PATH,
      needs: "organization:manage",
      handle({ query: given }) {
        // Only the Enterprise plan has a log (documented); the refusal is our guess.
        if (world.settings.auditLog === "off")
          throw new Refusal(403, { detail: "Audit logs are not available on this plan" });
        const { start_time, end_time, limit, cursor, workspace_id, operations } = checked(
          query,
          given,
          "query",
        );
        const wanted = operations === undefined ? undefined : [operations].flat();
        const found = world.bill.changes
          .map((change, n) => ({ ...change, id: `00000000-0000-4000-a000-${String(n).padStart(12, "0")}` }))
          .filter(
            ({ at, operation, workspaceId }) =>
              at >= start_time &&
              at <= Math.min(end_time, world.now()) &&
              (wanted === undefined || wanted.includes(operation)) &&
              (workspace_id === undefined || workspace_id === workspaceId),
          )
          // The newest first (our guess).
          .sort((a, b) => b.at - a.at);
        const from = cursor === undefined ? 0 : Number(Buffer.from(cursor, "base64").toString());
        const to = from + limit;
        return json({
          items: found.slice(from, to).map((one) => toWire(world, one)),
          cursor: to < found.length ? Buffer.from(`${to}`).toString("base64") : null,
        });
      },
    },
  ];
}

function toWire(world: World, change: World["bill"]["changes"][0] & { readonly id: string }): object {
  const { id, at, operation, workspaceId, userId, succeeded } = change;
  return {
    class_uid: 6003,
    class_name: "API Activity",
    category_uid: 6,
    category_name: "Application Activity",
    severity_id: 99,
    type_uid: 600303,
    activity_id: 3,
    activity_name: "Update",
    status_id: succeeded ? 1 : 2,
    status: succeeded ? "Success" : "Failure",
    time: at,
    metadata: { uid: id, product: { name: "Stand-in", vendor_name: "Stand-in" } },
    api: { operation },
    http_request: { http_method: "PUT", url: { path: "/api/v1/settings" } },
    http_response: { code: succeeded ? 200 : 403 },
    actor: { user: { uid: userId, credential_uid: null } },
    src_endpoint: { ip: "192.0.2.7", port: 443, intermediate_ips: null },
    resources: [],
    unmapped: {
      original_audit_log: {
        id,
        operation_name: operation,
        operation_succeeded: succeeded,
        request_time: new Date(at).toISOString(),
        api_key_id: null,
        user_id: userId,
        ls_user_id: userId,
        organization_id: world.organisation.id,
        workspace_id: workspaceId,
        enrichments: null,
      },
    },
  };
}

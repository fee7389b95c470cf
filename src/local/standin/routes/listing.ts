import { z } from "zod";
import { checked } from "../http/checked.ts";
import { noRoute } from "../http/refusal.ts";
import { json, type Route } from "../http/route.ts";
import type { World } from "../world.ts";

/** A boolean of a query. */
const flag = z.enum(["true", "false"]).transform((text) => text === "true");
const noQuery = z.strictObject({});
const workspaceQuery = z.strictObject({ include_deleted: flag.default(false) });

/**
 * Workspaces, organisation and version (docs/platform.md, Requests: documented and seen). A server may be without them:
 * `listing` off removes them. Unknown parameters are refused (our guess, as in billing).
 */
export function listing(world: World): Route[] {
  const route = <Q>(
    path: string,
    needs: Route["needs"],
    query: z.ZodType<Q>,
    answer: (query: Q) => unknown,
  ): Route => ({
    method: "GET",
    path,
    needs,
    handle(exchange) {
      if (!world.settings.listing) throw noRoute("GET", path);
      return json(answer(checked(query, exchange.query, "query")));
    },
  });
  return [
    route("/api/v1/workspaces", "key", workspaceQuery, ({ include_deleted }) =>
      world.organisation.workspaces
        .filter((one) => world.access.canRead(one) && (include_deleted || one.deletedAt === null))
        .map((one) => ({
          id: one.id,
          display_name: one.name,
          is_deleted: one.deletedAt !== null,
          organization_id: world.organisation.id,
          created_at: new Date(one.createdAt).toISOString(),
        })),
    ),
    // That it needs organization:read is our guess; it is a route of the organisation.
    route("/api/v1/orgs/current", "organization:read", noQuery, () => {
      const { id, name } = world.organisation;
      return { id, display_name: name };
    }),
    // It needs no key, and a self-hosted server alone has an installation and a license (documented).
    route("/api/v1/info", "nothing", noQuery, () => {
      const { serverVersion: version, hosting } = world.settings;
      if (hosting === "cloud") return { version, license_expiration_time: null };
      const billing_installation_id = world.organisation.id.replace(/^......../, "00000016");
      return { version, billing_installation_id, license_expiration_time: "2099-12-31T00:00:00Z" };
    }),
  ];
}

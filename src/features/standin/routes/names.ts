import { z } from "zod";
import { checked, noRoute } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";
import { tenantOf } from "./organisation.ts";

const noQuery = z.strictObject({});
const pageQuery = z.strictObject({ cursor: z.coerce.number().int().nonnegative().default(0) });
/** Small, so that a small organization has several pages. */
const PAGE = 2;

/** docs/platform.md, Names. Our guesses: workspaces list the keys of people, and the form of pages. */
export function names(world: World): Route[] {
  const { keys, sandboxes, users } = world.organisation;
  const route = (path: string, needs: Route["needs"], handle: Route["handle"]): Route => ({
    method: "GET",
    path,
    needs,
    handle(exchange) {
      if (!world.settings.names) throw noRoute("GET", path);
      return handle(exchange);
    },
  });
  const listed = (isOfPerson: boolean) => (exchange: Parameters<Route["handle"]>[0]) => {
    checked(noQuery, exchange.query, "query");
    return json(
      keys
        .map((key, n) => ({ ...key, n, by: users[n % users.length] }))
        .filter(({ n }) => (n % 3 === 2) === isOfPerson)
        .map(({ id, shortKey, description, n, by }) => ({
          id,
          short_key: shortKey,
          description,
          // Our guess: it names an id, or an address.
          created_by: (n % 2 === 0 ? by?.id : by?.email) ?? null,
          last_used_at: n % 5 === 4 ? null : new Date(world.now() - n * 3_600_000).toISOString(),
          expires_at: n % 3 === 0 ? new Date(world.now() + (n + 1) * 86_400_000).toISOString() : null,
        })),
    );
  };
  const paged = (path: string, type: "SANDBOX" | "SNAPSHOT") =>
    route(path, "workspace", (exchange) => {
      if (world.settings.sandboxes === "off") throw noRoute("GET", path);
      const { cursor } = checked(pageQuery, exchange.query, "query");
      const workspaceId = tenantOf(world, exchange);
      const all = sandboxes.filter((one) => one.type === type && one.workspace.id === workspaceId);
      const items = all.slice(cursor, cursor + PAGE).map(({ id, name }) => ({ id, name, labels: {} }));
      return json({ items, next_cursor: cursor + PAGE < all.length ? `${cursor + PAGE}` : null });
    });
  return [
    route("/api/v1/orgs/current/service-keys", "organization:read", listed(false)),
    route("/api/v1/api-key", "workspace", listed(true)),
    paged("/api/v2/sandboxes/boxes", "SANDBOX"),
    paged("/api/v2/sandboxes/snapshots", "SNAPSHOT"),
  ];
}

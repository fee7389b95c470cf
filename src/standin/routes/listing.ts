import { invalid, noRoute } from "../http/refusal.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import type { World } from "../world.ts";

/**
 * Workspaces, organisation and version (platform-facts.md, Requests: documented and seen in client code). Not in the
 * specification, so a server may well be without them: then `listing` is off and they do not exist.
 */
export function listing(world: World): Route[] {
  const route = (
    path: string,
    needs: Route["needs"],
    answer: (query: Exchange["query"]) => unknown,
  ): Route => ({
    method: "GET",
    path,
    needs,
    handle({ query }) {
      if (!world.settings.listing) throw noRoute("GET", path);
      return json(answer(query));
    },
  });
  return [
    route("/api/v1/workspaces", "key", (query) => {
      const deletedToo = flag(query, "include_deleted");
      return world.organisation.workspaces
        .filter((one) => world.access.canRead(one) && (deletedToo || !deleted(one)))
        .map((one) => ({
          id: one.id,
          display_name: one.name,
          is_deleted: deleted(one),
          organization_id: world.organisation.id,
          created_at: new Date(one.createdAt).toISOString(),
        }));
    }),
    // That it needs organization:read is our guess; it is a route of the organisation.
    route("/api/v1/orgs/current", "organization:read", (query) => {
      none(query);
      return { id: world.organisation.id, display_name: world.organisation.name };
    }),
    // Our guess: a version is no secret and needs no key.
    route("/api/v1/info", "nothing", (query) => {
      none(query);
      return { version: "0.0.0-standin" };
    }),
  ];
}

const deleted = (one: { deletedAt: number | null }): boolean => one.deletedAt !== null;

function flag(query: Exchange["query"], name: string): boolean {
  const { [name]: value = "false", ...rest } = query;
  none(rest);
  if (value === "true" || value === "false") return value === "true";
  throw invalid([{ loc: ["query", name], msg: "Input should be a valid boolean", type: "bool_parsing" }]);
}

/** Unknown parameters are refused (our guess, as in billing). */
function none(query: Exchange["query"]): void {
  const names = Object.keys(query);
  if (names.length === 0) return;
  throw invalid(
    names.map((name) => ({
      loc: ["query", name],
      msg: "Extra inputs are not permitted",
      type: "extra_forbidden",
    })),
  );
}

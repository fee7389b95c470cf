import { z } from "zod";
import {
  type Deployments,
  deploymentUpdate,
  newDeployment,
  type Templates,
  templateName,
} from "../engine/control-plane.ts";
import { checked, Refusal } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";

const templateUpdate = z.strictObject({ name: templateName.nullish() });
const noQuery = z.strictObject({});
const ids = z.object({ id: z.guid(), revision: z.guid().optional() });

/** docs/platform.md, Control plane. Every route needs the key and its workspace. */
export function controlPlane(
  { settings }: Pick<World, "settings">,
  templates: Templates,
  deployments: Deployments,
): Route[] {
  const route = (
    method: Route["method"],
    path: string,
    response: (given: { params: Readonly<Record<string, string>>; body: unknown }) => unknown,
    status = 200,
  ): Route => ({
    method,
    path,
    needs: "workspace",
    handle({ params, query, body }) {
      checked(noQuery, query, "query");
      return json(response({ params, body }), status);
    },
  });
  const known = (method: Route["method"]): Templates => {
    if (settings.templates) return templates;
    // The route is missing, so this is not the error of an unknown name (docs/platform.md, Control plane).
    throw new Refusal(method === "GET" ? 404 : 405, {
      detail: method === "GET" ? "Not Found" : "Method Not Allowed",
    });
  };
  const template = "/v2/sandboxes/templates/:name";
  const deployment = "/v2/deployments/:id";
  return [
    // Path: seen in client code. Body: as of the update.
    route("GET", template, ({ params: { name = "" } }) => known("GET").of(name)),
    route("PATCH", template, ({ params: { name = "" }, body }) => {
      const { name: to } = checked(templateUpdate, body);
      return known("PATCH").rename(name, to);
    }),
    // 201: documented.
    route("POST", "/v2/deployments", ({ body }) => deployments.create(checked(newDeployment, body)), 201),
    route("GET", deployment, ({ params }) => deployments.get(checked(ids, params, "path").id)),
    route("PATCH", deployment, ({ params, body }) => {
      const { id } = checked(ids, params, "path");
      return deployments.update(id, checked(deploymentUpdate, body));
    }),
    route("GET", `${deployment}/revisions/:revision`, ({ params }) => {
      const { id, revision = "" } = checked(ids, params, "path");
      return deployments.revision(id, revision);
    }),
  ];
}

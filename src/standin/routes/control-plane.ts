import { z } from "zod";
import { deploymentUpdate, newDeployment } from "../engine/deployments.ts";
import type { ControlPlane } from "../engine/plane.ts";
import { templateName } from "../engine/templates.ts";
import { checked } from "../http/checked.ts";
import { json, type Route } from "../http/route.ts";

/** Specification, SandboxTemplateUpdate. Other fields are refused (our guess): rule 2 says they cannot be changed. */
const templateUpdate = z.strictObject({ name: templateName.nullish() });
const noQuery = z.strictObject({});
const ids = z.object({ id: z.guid(), revision: z.guid().optional() });

/** Specification, "Update a sandbox template" and "Deployment lifecycle"; every route needs the key (Authentication 1). */
export function controlPlane(state: () => ControlPlane): Route[] {
  const route = (
    method: Route["method"],
    path: string,
    answer: (given: { params: Readonly<Record<string, string>>; body: unknown }) => unknown,
    status = 200,
  ): Route => ({
    method,
    path,
    needs: "key",
    handle({ params, query, body }) {
      checked(noQuery, query, "query");
      return json(answer({ params, body }), status);
    },
  });
  const template = "/v2/sandboxes/templates/:name";
  const deployment = "/v2/deployments/:id";
  return [
    // Reading one is not in the specification; its path is seen in client code, its shape is the update's.
    route("GET", template, ({ params: { name = "" } }) => state().templates.of(name)),
    route("PATCH", template, ({ params: { name = "" }, body }) => {
      const { name: to } = checked(templateUpdate, body);
      return state().templates.rename(name, to);
    }),
    // 201: documented elsewhere.
    route(
      "POST",
      "/v2/deployments",
      ({ body }) => state().deployments.create(checked(newDeployment, body)),
      201,
    ),
    route("GET", deployment, ({ params }) => state().deployments.get(checked(ids, params, "path").id)),
    route("PATCH", deployment, ({ params, body }) => {
      const { id } = checked(ids, params, "path");
      return state().deployments.update(id, checked(deploymentUpdate, body));
    }),
    route("GET", `${deployment}/revisions/:revision`, ({ params }) => {
      const { id, revision = "" } = checked(ids, params, "path");
      return state().deployments.revision(id, revision);
    }),
  ];
}

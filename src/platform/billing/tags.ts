import { z } from "zod";
import type { ResourceTag, WorkspaceTags } from "../../domain/usage/resource-tag.ts";
import type { Asking, PlatformHttp } from "../http/http.ts";
import { getJson } from "../http/read-body.ts";
import { describeValue, fromWireId } from "../parse/wire-values.ts";

const PATH = "/api/v1/workspaces/current/taggings";

/** The platform's names of the resources whose usage is read, and what they are here. */
const TAGGED = { projects: "project", deployments: "deployment", sandboxes: "sandbox" } as const;

const answerSchema = z.array(z.unknown());
const fields = z.record(z.string(), z.unknown());

/** `GET /api/v1/workspaces/current/taggings`: the tags of a workspace's projects, deployments and sandboxes (docs/platform-units.md, Resource tags). */
export async function workspaceTags(
  http: PlatformHttp,
  { workspaceId, signal }: Asking & { readonly workspaceId: string },
): Promise<WorkspaceTags> {
  const answer = await getJson(http, { path: PATH, workspaceId, signal }, answerSchema);
  const [tags, refused]: [ResourceTag[], string[]] = [[], []];
  answer.forEach((wire, nth) => {
    const tag = fields.safeParse(wire).data ?? {};
    const textOf = (of: Record<string, unknown>, field: string, place: string): string | undefined => {
      const given = of[field];
      const kept = typeof given === "string" && given !== "" ? fromWireId(given) : undefined;
      if (kept === undefined) refused.push(`${place}.${field} is ${describeValue(given)}`);
      // Only ids are the same in upper and lower case.
      return kept === undefined || field === "resource_id" ? kept : String(given);
    };
    const [key, value] = [textOf(tag, "tag_key", `${nth}`), textOf(tag, "tag_value", `${nth}`)];
    if (key === undefined || value === undefined) return;
    const resources = fields.safeParse(tag.resources ?? {}).data;
    for (const [name, dimension] of Object.entries(TAGGED)) {
      const place = `${nth}.resources.${name}`;
      const listed = resources === undefined ? undefined : (resources[name] ?? []);
      if (!Array.isArray(listed)) {
        refused.push(`${place} is ${describeValue(listed)}`);
        continue;
      }
      listed.forEach((resource: unknown, i) => {
        const resourceId = textOf(fields.safeParse(resource).data ?? {}, "resource_id", `${place}.${i}`);
        if (resourceId !== undefined) tags.push({ dimension, resourceId, key, value });
      });
    }
  });
  return { tags, refused };
}

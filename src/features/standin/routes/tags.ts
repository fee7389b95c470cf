import { z } from "zod";
import type { Fault } from "../engine/faults.ts";
import { checked, Refusal } from "../engine/refusal.ts";
import { TAGGINGS, taggedTypes } from "../engine/tags.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";
import { tenantOf } from "./organisation.ts";

const taggingsQuery = z.strictObject({ tag_value_id: z.guid().toLowerCase().optional() });

const NOWHERE = "00000000-0000-4000-8000-000000000000";

/** docs/platform.md, Resource tags. */
export function tags(world: World): Route[] {
  return [
    {
      method: "GET",
      path: TAGGINGS,
      needs: "workspace",
      handle({ query: given, headers, fault }) {
        // Only larger plans have tags (documented); the refusal is our guess.
        if (world.settings.tags === "off")
          throw new Refusal(403, { detail: "Resource tags are not available on this plan" });
        const { tag_value_id: id } = checked(taggingsQuery, given, "query");
        // An unknown value gives an empty list (our guess).
        const values = valuesOf(world, tenantOf(world, { headers }));
        const requested = values.filter((one) => id === undefined || one.tag_value_id === id);
        return json(fault?.kind === "tags" ? spoilt(requested, fault.wrong) : requested);
      },
    },
  ];
}

type Value = ReturnType<typeof valuesOf>[number];

function valuesOf(world: World, workspaceId: string) {
  return world.tags.of(workspaceId).map((tag) => {
    const ofType = (type: (typeof taggedTypes)[number]) =>
      tag.resources
        .filter((one) => one.type === type)
        .map(({ taggingId, name, id }) => ({ tagging_id: taggingId, resource_name: name, resource_id: id }));
    return {
      tag_key: tag.key,
      tag_key_id: tag.keyId,
      tag_value: tag.value,
      tag_value_id: tag.id,
      resources: Object.fromEntries(taggedTypes.map((type) => [type, ofType(type)])),
    };
  });
}

function spoilt(
  [first, ...others]: readonly Value[],
  wrong: Extract<Fault, { kind: "tags" }>["wrong"],
): object[] {
  if (first === undefined) return [];
  if (wrong === "no-key") return [{ ...first, tag_key: undefined }, ...others];
  const unknown = { tagging_id: NOWHERE, resource_name: "nowhere", resource_id: NOWHERE };
  const projects = [unknown, ...(first.resources.projects ?? [])];
  return [{ ...first, resources: { ...first.resources, projects } }, ...others];
}

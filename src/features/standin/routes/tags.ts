import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import { TAGGINGS, taggedTypes } from "../engine/tags.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";
import { tenantOf } from "./organisation.ts";

const taggingsQuery = z.strictObject({ tag_value_id: z.guid().toLowerCase().optional() });

/** docs/platform.md, Resource tags. */
export function tags(world: World): Route[] {
  return [
    {
      method: "GET",
      path: TAGGINGS,
      needs: "workspace",
      handle({ query: given, headers }) {
        // Only larger plans have tags (documented); the refusal is our guess.
        if (world.settings.tags === "off")
          throw new Refusal(403, { detail: "Resource tags are not available on this plan" });
        const { tag_value_id: id } = checked(taggingsQuery, given, "query");
        // An unknown value gives an empty list (our guess).
        const values = valuesOf(world, tenantOf(world, { headers }));
        return json(values.filter((one) => id === undefined || one.tag_value_id === id));
      },
    },
  ];
}

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

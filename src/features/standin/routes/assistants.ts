import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import { ASSISTANT } from "../engine/runs.ts";
import { json, type Route } from "../http/route.ts";

const search = z.looseObject({ graph_id: z.string().nullish() });

/** docs/platform.md, Agent server. There is one assistant, and none can be created. */
export function assistants(isLive: () => boolean): Route[] {
  return [
    {
      method: "POST",
      path: "/assistants/search",
      needs: "no wrong key",
      handle({ body }) {
        const { graph_id: graph } = checked(search, body ?? {});
        const { id, name } = ASSISTANT;
        if (graph == null || graph === name)
          return json([{ assistant_id: id, graph_id: name, name, version: 1 }]);
        if (!isLive()) return json([]);
        throw new Refusal(404, { detail: `Graph '${graph}' not found. Expected one of: ['${name}']` });
      },
    },
  ];
}

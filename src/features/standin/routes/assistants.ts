import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import { ASSISTANT, type RunEngine } from "../engine/runs.ts";
import type { World } from "../engine/world.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import { agentRoute } from "./threads.ts";

const search = z.looseObject({
  graph_id: z.string().nullish(),
  metadata: z.looseObject({ created_by: z.string().optional() }).nullish(),
});
const STARTED = "2026-01-05T00:00:00.000Z";
const MESSAGES = {
  properties: { messages: { items: {}, title: "Messages", type: "array" } },
  required: ["messages"],
  title: "State",
  type: "object",
};
const WIRE = {
  assistant_id: ASSISTANT.id,
  graph_id: ASSISTANT.name,
  config: {},
  context: {},
  metadata: { created_by: "system" },
  name: ASSISTANT.name,
  created_at: STARTED,
  updated_at: STARTED,
  version: 1,
  description: null,
};

/** docs/platform.md, Agent server. There is one assistant, and none can be created. */
export function assistants(world: World, engine: RunEngine): Route[] {
  const route = (...given: [Route["method"], string, Parameters<typeof agentRoute>[3]]) =>
    agentRoute(engine, ...given);
  const isLive = () => world.settings.a2a === "live";
  const found = (body: unknown) => {
    const { graph_id: graph, metadata } = checked(search, body ?? {});
    if (graph != null && graph !== ASSISTANT.name) {
      if (!isLive()) return [];
      throw new Refusal(404, {
        detail: `Graph '${graph}' not found. Expected one of: ['${ASSISTANT.name}']`,
      });
    }
    return [undefined, "system"].includes(metadata?.created_by) ? [WIRE] : [];
  };
  const refuse = ({ params }: Exchange) => {
    const id = checked(z.guid(), params.assistant, "path");
    if (id !== ASSISTANT.id) throw new Refusal(404, { detail: `Assistant with ID ${id} not found` });
  };
  const one = (method: Route["method"], path: string, body: object) =>
    route(method, `/assistants/:assistant${path}`, (given) => {
      refuse(given);
      return json(body);
    });
  return [
    route("POST", "/assistants/search", ({ body }) => json(found(body))),
    route("POST", "/assistants/count", ({ body }) => json(found(body).length)),
    one("GET", "", WIRE),
    one("POST", "/versions", [WIRE]),
    one("GET", "/schemas", {
      graph_id: ASSISTANT.name,
      input_schema: MESSAGES,
      output_schema: MESSAGES,
      state_schema: MESSAGES,
      config_schema: {},
      context_schema: null,
    }),
    one("GET", "/graph", {
      nodes: ["__start__", ASSISTANT.name, "__end__"].map((id) => ({ id })),
      edges: [
        { source: "__start__", target: ASSISTANT.name },
        { source: ASSISTANT.name, target: "__end__" },
      ],
    }),
    route("GET", "/ok", () => json({ ok: true })),
    route("GET", "/info", () => json({ version: isLive() ? "0.16.7" : "0.4.21" })),
  ];
}

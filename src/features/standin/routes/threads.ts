import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import { ASSISTANT, isAssistant, type Run, type RunEngine, type Thread, toWireRun } from "../engine/runs.ts";
import { json, type Route } from "../http/route.ts";
import type { Response } from "../http/wire.ts";

/** A route without these ids has empty ones. */
const path = z.object({ thread: z.guid().default(""), run: z.guid().default("") });
/** Other fields are ignored (seen). */
const newThread = z.looseObject({ thread_id: z.guid().optional() });
/** Types by role (documented). Another role gives the type `chat`. */
const TYPES: Readonly<Record<string, string>> = {
  user: "human",
  human: "human",
  assistant: "ai",
  ai: "ai",
  system: "system",
};
/** Other fields are ignored (seen), so nothing streams. */
const newRun = z.looseObject({
  assistant_id: z.string(),
  input: z.looseObject({
    messages: z.array(z.looseObject({ role: z.string(), content: z.string() })).min(1),
  }),
  // `rollback`: docs/platform.md, Agent server. Others and default: documented.
  multitask_strategy: z.enum(["reject", "enqueue", "interrupt", "rollback"]).default("enqueue"),
});
const nothing = z.strictObject({});
const whole = z.coerce.number().int().min(0);
const listing = z.strictObject({ limit: whole.max(1000).default(10), offset: whole.default(0) });
const cancelling = z.strictObject({
  wait: z
    .enum(["0", "1", "false", "true"])
    .default("0")
    .transform((text) => text === "1" || text === "true"),
  action: z.enum(["interrupt", "rollback"]).default("interrupt"),
});

/** docs/platform.md, Agent server. A server that runs locally needs no key (documented). A wrong key is refused (our guess). */
export function threads(engine: RunEngine): Route[] {
  const route = <Q>(
    method: Route["method"],
    url: string,
    query: z.ZodType<Q>,
    response: (given: Requested<Q>) => Response | Promise<Response>,
  ): Route => ({
    method,
    path: url,
    needs: "no wrong key",
    handle: ({ params, query: given, body }) =>
      response({ ids: checked(path, params, "path"), query: checked(query, given, "query"), body }),
  });
  const thread = ({ ids }: Requested<unknown>): Thread => engine.thread(ids.thread);
  const run = ({ ids }: Requested<unknown>): Run => engine.run(ids.thread, ids.run);
  const RUN = "/threads/:thread/runs/:run";
  return [
    route("POST", "/assistants/search", nothing, ({ body }) => {
      const { graph_id: graph } = checked(z.looseObject({ graph_id: z.string().optional() }), body);
      return json(graph === undefined || graph === ASSISTANT.name ? [{ assistant_id: ASSISTANT.id }] : []);
    }),
    route("POST", "/threads", nothing, ({ body }) => {
      const { thread_id: id } = checked(newThread, body);
      if (id !== undefined && engine.find(id) !== undefined) {
        throw new Refusal(409, { detail: `Thread with ID ${id} already exists` });
      }
      const created = engine.createThread(id);
      return json({ thread_id: created.id, created_at: toWireTime(created), status: "idle" });
    }),
    route("GET", "/threads/:thread/state", nothing, (given) => json(toWireState(thread(given)))),
    route("GET", "/threads/:thread/runs", listing, (given) => {
      const { limit, offset } = given.query;
      // Newest first (documented).
      const page = thread(given).runs.toReversed();
      return json(page.slice(offset, offset + limit).map(toWireRun));
    }),
    route("POST", "/threads/:thread/runs", nothing, (given) => {
      const wanted = checked(newRun, given.body);
      const of = thread(given);
      if (!isAssistant(wanted.assistant_id)) {
        throw new Refusal(404, { detail: `Assistant '${wanted.assistant_id}' not found` });
      }
      const started = engine.start({
        thread: of,
        input: wanted.input.messages.map(({ role, content }) => ({ type: typeOf(role), content })),
        strategy: wanted.multitask_strategy,
      });
      return {
        ...json(toWireRun(started)),
        // Clients read the run's id from this header (documented).
        headers: { "content-location": `/threads/${of.id}/runs/${started.id}` },
      };
    }),
    route("GET", RUN, nothing, (given) => json(toWireRun(run(given)))),
    // If the client disconnects, the run continues (documented).
    route("GET", `${RUN}/join`, nothing, async (given) => {
      const joined = run(given);
      if ((await joined.ended.promise) === "deleted") run(given);
      return json(toWireValues(joined));
    }),
    route("POST", `${RUN}/cancel`, cancelling, async (given) => {
      const { wait, action } = given.query;
      const cancelled = run(given);
      engine.cancel(cancelled, action);
      if (wait) await cancelled.ended.promise;
      // 202, or 204 if the client waits (documented).
      return { status: wait ? 204 : 202, type: "application/json", body: "" };
    }),
  ];
}

function typeOf(role: string): string {
  return Object.hasOwn(TYPES, role) ? `${TYPES[role]}` : "chat";
}

interface Requested<Q> {
  readonly ids: z.output<typeof path>;
  readonly query: Q;
  readonly body: unknown;
}

function toWireTime({ createdAt }: Thread): string {
  return new Date(createdAt).toISOString();
}

/** `values.messages`: docs/platform.md, Agent server. Others: documented. */
function toWireState(thread: Thread): object {
  const { messages, runs } = thread;
  return {
    values: { messages },
    next: runs.some((run) => run.status === "running") ? [ASSISTANT.name] : [],
    created_at: toWireTime(thread),
  };
}

/** The state's values, and `__error__` if the run failed (documented). */
function toWireValues({ after, error }: Run): object {
  const failed = error === null ? {} : { __error__: { error: "AgentError", message: error } };
  return { messages: after, ...failed };
}

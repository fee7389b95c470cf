import { z } from "zod";
import {
  ASSISTANT,
  isAssistant,
  isOpen,
  type Run,
  type RunEngine,
  type Thread,
  toWireRun,
} from "../engine/runs.ts";
import { checked, Refusal } from "../http/refusal.ts";
import { json, type Route } from "../http/route.ts";
import type { Answer } from "../http/wire.ts";

/** Of a route that has them. */
const path = z.object({ thread: z.guid().default(""), run: z.guid().default("") });
const metadata = z.record(z.string(), z.unknown()).default({});
/** Documented fields. Others are not implemented, and refused. */
const newThread = z.strictObject({
  thread_id: z.guid().optional(),
  metadata,
  if_exists: z.enum(["raise", "do_nothing"]).default("raise"),
});
/** The types of messages by role (documented). Any other role is a string too, and makes a message of type `chat`. */
const TYPES: Readonly<Record<string, string>> = {
  user: "human",
  human: "human",
  assistant: "ai",
  ai: "ai",
  system: "system",
  developer: "system",
  tool: "tool",
  function: "function",
};
const anyObject = z.record(z.string(), z.unknown());
const newRun = z.strictObject({
  assistant_id: z.string(),
  // An input may have other keys, and a message other fields, such as an id (documented).
  input: z.looseObject({
    messages: z.array(z.looseObject({ role: z.string(), content: z.string() })).min(1),
  }),
  // Documented, and without effect here: nothing streams, and the assistant needs no configuration.
  config: anyObject.optional(),
  context: anyObject.optional(),
  stream_mode: z.union([z.string(), z.array(z.string())]).optional(),
  stream_subgraphs: z.boolean().optional(),
  stream_resumable: z.boolean().optional(),
  durability: z.string().optional(),
  // `rollback`: docs/platform.md, Agent server. The others and the default are documented.
  multitask_strategy: z.enum(["reject", "enqueue", "interrupt", "rollback"]).default("enqueue"),
  metadata,
  if_not_exists: z.enum(["create", "reject"]).default("reject"),
});
const nothing = z.strictObject({});
const whole = z.coerce.number().int().min(0);
const listing = z.strictObject({
  limit: whole.max(1000).default(10),
  offset: whole.default(0),
  status: z.enum(["pending", "running", "success", "error", "interrupted"]).optional(),
});
const cancelling = z.strictObject({
  wait: z
    .enum(["0", "1", "false", "true"])
    .default("0")
    .transform((text) => text === "1" || text === "true"),
  action: z.enum(["interrupt", "rollback"]).default("interrupt"),
});

/**
 * Threads and runs (docs/platform.md, Agent server). A server run locally needs no key (documented); a wrong one is refused
 * (our guess).
 */
export function threads(engine: () => RunEngine): Route[] {
  const route = <Q>(
    method: Route["method"],
    url: string,
    query: z.ZodType<Q>,
    answer: (given: Asked<Q>) => Answer | Promise<Answer>,
  ): Route => ({
    method,
    path: url,
    needs: "no wrong key",
    handle: ({ params, query: given, body }) =>
      answer({ ids: checked(path, params, "path"), query: checked(query, given, "query"), body }),
  });
  const thread = ({ ids }: Asked<unknown>): Thread => engine().thread(ids.thread);
  const run = ({ ids }: Asked<unknown>): Run => engine().run(ids.thread, ids.run);
  const RUN = "/threads/:thread/runs/:run";
  return [
    route("POST", "/threads", nothing, ({ body }) => {
      const given = checked(newThread, body);
      const known = given.thread_id === undefined ? undefined : engine().find(given.thread_id);
      if (known !== undefined && given.if_exists === "raise") {
        throw new Refusal(409, { detail: `Thread with ID ${known.id} already exists` });
      }
      return json(toWireThread(known ?? engine().createThread(given.thread_id, given.metadata)));
    }),
    route("GET", "/threads/:thread", nothing, (given) => json(toWireThread(thread(given)))),
    route("GET", "/threads/:thread/state", nothing, (given) => json(toWireState(thread(given)))),
    route("GET", "/threads/:thread/runs", listing, (given) => {
      const { limit, offset, status } = given.query;
      // Newest first (documented).
      const runs = thread(given).runs.filter((one) => status === undefined || one.status === status);
      const page = runs.toReversed().slice(offset, offset + limit);
      return json(page.map(toWireRun));
    }),
    route("POST", "/threads/:thread/runs", nothing, ({ ids, body }) => {
      const wanted = checked(newRun, body);
      const known = engine().find(ids.thread);
      if (known === undefined && wanted.if_not_exists === "reject") engine().thread(ids.thread);
      if (!isAssistant(wanted.assistant_id)) {
        throw new Refusal(404, { detail: `Assistant '${wanted.assistant_id}' not found` });
      }
      const {
        assistant_id: _,
        multitask_strategy: strategy,
        metadata,
        if_not_exists: __,
        ...kwargs
      } = wanted;
      const started = engine().start({
        thread: known ?? engine().createThread(ids.thread),
        input: wanted.input.messages.map(({ role, content }) => ({ type: typeOf(role), content })),
        strategy,
        metadata,
        kwargs,
      });
      return {
        ...json(toWireRun(started)),
        // Documented; clients read the run's id from it.
        headers: { "content-location": `/threads/${started.thread.id}/runs/${started.id}` },
      };
    }),
    route("GET", RUN, nothing, (given) => json(toWireRun(run(given)))),
    // A client that disconnects does not end the run (documented).
    route("GET", `${RUN}/join`, nothing, async (given) => {
      const joined = run(given);
      if ((await joined.ended.promise) === "deleted") run(given);
      return json(toWireValues(joined));
    }),
    route("POST", `${RUN}/cancel`, cancelling, async (given) => {
      const { wait, action } = given.query;
      const cancelled = run(given);
      engine().cancel(cancelled, action);
      if (wait) await cancelled.ended.promise;
      // 202, and 204 for a client that waits (documented).
      return { status: wait ? 204 : 202, type: "application/json", body: "" };
    }),
    route("DELETE", RUN, nothing, (given) => {
      engine().remove(run(given));
      return { status: 204, type: "application/json", body: "" };
    }),
  ];
}

function typeOf(role: string): string {
  return Object.hasOwn(TYPES, role) ? `${TYPES[role]}` : "chat";
}

interface Asked<Q> {
  readonly ids: z.output<typeof path>;
  readonly query: Q;
  readonly body: unknown;
}

function toWireThread(thread: Thread): object {
  const { id, createdAt, updatedAt, metadata: own, messages, runs } = thread;
  const last = runs.at(-1)?.status;
  const idle = last === "error" || last === "interrupted" ? last : "idle";
  return {
    thread_id: id,
    created_at: new Date(createdAt).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
    metadata: own,
    status: runs.some(isOpen) ? "busy" : idle,
    values: messages.length === 0 ? null : { messages },
  };
}

/** `values.messages`: docs/platform.md, Agent server. The other fields are documented, and mostly empty here. */
function toWireState(thread: Thread): object {
  const { id, updatedAt, messages, runs } = thread;
  return {
    values: { messages },
    next: runs.some((run) => run.status === "running") ? [ASSISTANT.name] : [],
    tasks: [],
    metadata: { thread_id: id },
    created_at: new Date(updatedAt).toISOString(),
    checkpoint: null,
    parent_checkpoint: null,
  };
}

/** A join answers with the state's values, and with `__error__` if the run failed (documented). */
function toWireValues({ after, error }: Run): object {
  const failed = error === null ? {} : { __error__: { error: "AgentError", message: error } };
  return { messages: after, ...failed };
}

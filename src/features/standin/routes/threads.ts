import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import { ASSISTANT, isOpen, type Message, type Run, type RunEngine, type Thread } from "../engine/runs.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import type { Response } from "../http/wire.ts";

/**
 * docs/platform.md, Agent server: the routes of threads and runs that usage-etl calls. Unknown fields and parameters are accepted
 * (measured).
 */
const path = z.object({ thread: z.guid().default(""), run: z.guid().default("") });
const whole = z.coerce.number().int().min(0);
const listing = z.looseObject({ limit: whole.max(1000).default(10), offset: whole.default(0) });

/** Types by role. A run with another role fails (measured). */
const TYPES: Readonly<Record<string, string>> = { user: "human", assistant: "ai" };
const messages = z
  .array(z.looseObject({ role: z.string().default(""), content: z.unknown() }))
  .transform((all) => all.map(({ role, content }) => ({ type: TYPES[role] ?? role, content })));
const newRun = z.looseObject({
  assistant_id: z.string(),
  input: z.looseObject({ messages: messages.default([]) }).nullish(),
  multitask_strategy: z.enum(["reject", "enqueue", "interrupt", "rollback"]).default("enqueue"),
});

type Requested = Exchange & { readonly thread: () => Thread; readonly run: () => Run };

export function threads(engine: RunEngine, isLive: () => boolean): Route[] {
  const route = (
    method: Route["method"],
    url: string,
    response: (given: Requested) => Response | Promise<Response>,
  ): Route => ({
    method,
    path: url,
    // A server that runs locally needs no key (measured). A wrong key is refused (our guess).
    needs: "no wrong key",
    handle: (exchange) => {
      const ids = checked(path, exchange.params, "path");
      const thread = () => engine.thread(ids.thread);
      return response({ ...exchange, thread, run: () => engine.run(ids.thread, ids.run) });
    },
  });
  return [
    route("POST", "/threads", ({ body }) => {
      checked(z.looseObject({}), body);
      return json(toWireThread(engine.createThread()));
    }),
    route("GET", "/threads/:thread/state", ({ thread }) => json(toWireState(thread()))),
    route("GET", "/threads/:thread/runs", ({ thread, query }) => {
      const { limit, offset } = checked(listing, query, "query");
      const newest = thread().runs.toReversed();
      return json(newest.slice(offset, offset + limit).map(toWireRun));
    }),
    route("POST", "/threads/:thread/runs", ({ thread, body }) => {
      const { assistant_id, input, multitask_strategy: strategy } = checked(newRun, body);
      refuseAssistant(assistant_id);
      return json(toWireRun(engine.start(thread(), { input: input?.messages ?? [], strategy })));
    }),
    route("GET", "/threads/:thread/runs/:run", ({ run }) => json(toWireRun(run()))),
    // If the client disconnects, the run continues. An unknown run is no 404 (measured).
    route("GET", "/threads/:thread/runs/:run/join", async ({ thread, params }) => {
      const run = thread().runs.find(({ id }) => id === params.run);
      const failed = (error: string, message: string) => json({ __error__: { error, message } });
      if (run === undefined) return isLive() ? failed("HTTPException", "404: Run not found") : json(null);
      const end = await run.ended.promise;
      if (end === "deleted" && !isLive()) return failed("UserRollback", "User requested rollback of the run");
      return json(run.status === "error" ? { __error__: run.error } : toWireValues(run.thread, run));
    }),
  ];
}

/** A name that is no graph's is refused with 422, an unknown id with 404 (measured). */
function refuseAssistant(nameOrId: string): void {
  if (nameOrId === ASSISTANT.name || nameOrId === ASSISTANT.id) return;
  const isId = z.guid().safeParse(nameOrId).success;
  const detail = isId ? `Assistant with ID ${nameOrId} not found` : `Invalid assistant: '${nameOrId}'`;
  throw new Refusal(isId ? 404 : 422, { detail });
}

const timeOf = (at: number) => new Date(at).toISOString();

function toWireThread({ id, createdAt }: Thread): object {
  const [created_at, updated_at] = [timeOf(createdAt), timeOf(createdAt)];
  return { thread_id: id, created_at, updated_at, metadata: {}, status: "idle", config: {}, values: null };
}

function toWireRun({ id, thread, createdAt, updatedAt, status, request }: Run): object {
  const { name: graph_id, id: assistant_id } = ASSISTANT;
  return {
    run_id: id,
    thread_id: thread.id,
    assistant_id,
    created_at: timeOf(createdAt),
    updated_at: timeOf(updatedAt),
    metadata: { created_by: "system", graph_id, assistant_id },
    status,
    kwargs: {},
    multitask_strategy: request.strategy,
  };
}

function toWireMessage({ id, type, content }: Message): object {
  return { content, additional_kwargs: {}, response_metadata: {}, type, name: null, id };
}

/** The state's values, with the end of a run. */
function toWireValues(thread: Thread, run: Run): object {
  const messages = thread.messages.map(toWireMessage);
  return run.question === null ? { messages } : { messages, __interrupt__: [run.question] };
}

function toWireState(thread: Thread): object {
  const last = thread.runs.at(-1);
  const interrupts = last?.question ? [last.question] : [];
  const isActive =
    last !== undefined && (isOpen(last) || last.status === "interrupted" || interrupts.length > 0);
  return {
    values: thread.messages.length === 0 ? {} : { messages: thread.messages.map(toWireMessage) },
    next: isActive ? [ASSISTANT.name] : [],
    interrupts,
  };
}

import { randomUUID } from "node:crypto";
import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import {
  ASSISTANT,
  isOpen,
  type Message,
  messagesOf,
  type Run,
  type RunEngine,
  type Thread,
} from "../engine/runs.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import type { Response } from "../http/wire.ts";

/** docs/platform.md, Agent server. Unknown fields and parameters are accepted (measured). */
const path = z.object({ thread: z.guid().default(""), run: z.guid().default("") });
const metadata = z.record(z.string(), z.unknown()).nullish();
const newThread = z.looseObject({
  thread_id: z.guid().nullish(),
  if_exists: z.enum(["raise", "do_nothing"]).nullish(),
  metadata,
});
const whole = z.coerce.number().int().min(0);
const paging = { limit: whole.max(1000).default(10), offset: whole.default(0) };
const listing = z.looseObject({ ...paging, status: z.string().optional() });
const search = z.looseObject({
  ...paging,
  metadata,
  ids: z.array(z.string()).nullish(),
  status: z.string().nullish(),
  sort_by: z.string().nullish(),
  sort_order: z.string().nullish(),
});
const states = z.looseObject({ limit: whole.optional() });
/** A server that runs locally needs no key (measured). A wrong key is refused (our guess). */
const needs = "no wrong key";

/** Types by role. A run with another role fails (measured). */
const TYPES: Readonly<Record<string, string>> = { user: "human", assistant: "ai" };
const messages = z
  .array(z.looseObject({ role: z.string().optional(), type: z.string().optional(), content: z.unknown() }))
  .transform((all) =>
    all.map(({ role, type = role ?? "", content }) => ({ type: TYPES[type] ?? type, content })),
  );
export const values = z.looseObject({ messages: messages.default([]) }).nullish();

export type Requested = Exchange & { readonly thread: () => Thread; readonly run: () => Run };

export function agentRoute(
  engine: RunEngine,
  method: Route["method"],
  url: string,
  response: (given: Requested) => Response | Promise<Response>,
): Route {
  return {
    method,
    path: url,
    needs,
    handle: (exchange) => {
      const ids = checked(path, exchange.params, "path");
      const thread = () => engine.thread(ids.thread);
      return response({ ...exchange, thread, run: () => engine.run(ids.thread, ids.run) });
    },
  };
}

export function threads(engine: RunEngine): Route[] {
  const route = (...given: [Route["method"], string, Parameters<typeof agentRoute>[3]]) =>
    agentRoute(engine, ...given);
  const found = (body: unknown): Thread[] => {
    const { ids, status, metadata, sort_order } = checked(search, body);
    const wanted = Object.entries(metadata ?? {});
    const all = engine.threads.filter(
      (one) =>
        (ids == null || ids.includes(one.id)) &&
        (status == null || statusOf(one) === status) &&
        wanted.every(([key, value]) => one.metadata[key] === value),
    );
    return sort_order === "asc" ? all : all.reverse();
  };
  const history = (thread: Thread, limit: number) =>
    json(
      thread.states
        .map((_state, at) => toWireState({ ...thread, states: thread.states.slice(0, at + 1) }))
        .reverse()
        .slice(0, limit),
    );
  return [
    route("POST", "/threads", ({ body }) => {
      const { thread_id, if_exists, metadata } = checked(newThread, body);
      const known = engine.find(thread_id ?? "");
      if (known !== undefined && if_exists !== "do_nothing") {
        throw new Refusal(409, { detail: `Thread with ID ${thread_id} already exists` });
      }
      return json(toWireThread(known ?? engine.createThread(thread_id ?? undefined, metadata ?? {})));
    }),
    route("POST", "/threads/search", ({ body }) => {
      const { limit, offset } = checked(search, body);
      return json(
        found(body)
          .slice(offset, offset + limit)
          .map(toWireThread),
      );
    }),
    route("POST", "/threads/count", ({ body }) => json(found(body).length)),
    route("GET", "/threads/:thread", ({ thread }) => json(toWireThread(thread()))),
    route("PATCH", "/threads/:thread", ({ thread, body }) => {
      const of = thread();
      of.metadata = { ...of.metadata, ...checked(newThread, body).metadata };
      return json(toWireThread(of));
    }),
    route("DELETE", "/threads/:thread", ({ thread }) => {
      engine.deleteThread(thread());
      return EMPTY;
    }),
    route("POST", "/threads/:thread/copy", ({ params }) => {
      const known = engine.find(params.thread ?? "");
      // Not 404 (measured).
      if (known === undefined) throw new Refusal(409, { detail: `Thread ${params.thread} cannot be copied` });
      return json(toWireThread(engine.copy(known)));
    }),
    route("GET", "/threads/:thread/state", ({ thread }) => json(toWireState(thread()))),
    route("POST", "/threads/:thread/state", ({ thread, body }) => {
      const given = checked(z.looseObject({ values }), body).values;
      const of = thread();
      return json({ checkpoint: checkpointOf(of, engine.write(of, given?.messages ?? [])) });
    }),
    // Without a limit, one state (measured).
    route("GET", "/threads/:thread/history", ({ thread, query }) =>
      history(thread(), checked(states, query, "query").limit ?? 1),
    ),
    route("POST", "/threads/:thread/history", ({ thread, body }) =>
      history(thread(), checked(states, body ?? {}).limit ?? 1),
    ),
    route("GET", "/threads/:thread/runs", ({ thread, query }) => {
      const { limit, offset, status } = checked(listing, query, "query");
      const runs = thread().runs.filter((one) => status === undefined || one.status === status);
      return json(
        runs
          .toReversed()
          .slice(offset, offset + limit)
          .map(toWireRun),
      );
    }),
  ];
}

export const EMPTY: Response = { status: 204, type: "application/json", body: "" };

const timeOf = (at: number) => new Date(at).toISOString();

function statusOf({ runs }: Thread): string {
  if (runs.some(isOpen)) return "busy";
  const last = runs.at(-1);
  if (last?.status === "error") return "error";
  return last?.status === "interrupted" || last?.question ? "interrupted" : "idle";
}

function toWireThread(thread: Thread): object {
  const { id, createdAt, updatedAt, metadata, states } = thread;
  return {
    thread_id: id,
    created_at: timeOf(createdAt),
    updated_at: timeOf(updatedAt),
    metadata,
    status: statusOf(thread),
    config: {},
    values: states.length === 0 ? null : { messages: messagesOf(thread).map(toWireMessage) },
  };
}

export function toWireRun(run: Run): object {
  const { id, thread, createdAt, updatedAt, status, request } = run;
  const { name: graph_id, id: assistant_id } = ASSISTANT;
  return {
    run_id: id,
    thread_id: thread.id,
    assistant_id,
    created_at: timeOf(createdAt),
    updated_at: timeOf(updatedAt),
    metadata: { ...request.metadata, created_by: "system", graph_id, assistant_id },
    status,
    kwargs: {},
    multitask_strategy: request.strategy,
  };
}

export function toWireMessage({ id, type, content }: Message): object {
  return { content, additional_kwargs: {}, response_metadata: {}, type, name: null, id };
}

export function toWireValues(thread: Thread, run?: Run): object {
  const interrupts = run?.question && [run.question];
  return {
    messages: messagesOf(thread).map(toWireMessage),
    ...(interrupts && { __interrupt__: interrupts }),
  };
}

function checkpointOf({ id }: Thread, state: { readonly id: string } | undefined): object | null {
  return state === undefined ? null : { thread_id: id, checkpoint_ns: "", checkpoint_id: state.id };
}

function toWireState(thread: Thread): object {
  const { states, runs, createdAt } = thread;
  const [state, parent] = [states.at(-1), states.at(-2)];
  const run = state?.run === undefined ? undefined : runs.find((one) => one === state.run);
  const interrupts = run?.question && run === runs.at(-1) ? [run.question] : [];
  const isActive = run?.status === "running" || run?.status === "interrupted" || interrupts.length > 0;
  const next = isActive ? [ASSISTANT.name] : [];
  return {
    values: state === undefined ? {} : { messages: state.messages.map(toWireMessage) },
    next,
    tasks: next.map((name) => ({ id: randomUUID(), name, error: null, interrupts })),
    metadata: { run_id: run?.id },
    created_at: timeOf(state?.at ?? createdAt),
    checkpoint: checkpointOf(thread, state),
    parent_checkpoint: checkpointOf(thread, parent),
    interrupts,
    checkpoint_id: state?.id ?? null,
    parent_checkpoint_id: parent?.id ?? null,
  };
}

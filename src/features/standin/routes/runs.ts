import { z } from "zod";
import { checked, Refusal } from "../engine/refusal.ts";
import { ASSISTANT, isOpen, type Run, type RunEngine, type RunRequest, type Thread } from "../engine/runs.ts";
import { json, type Route } from "../http/route.ts";
import { eventStream, type Response } from "../http/wire.ts";
import {
  agentRoute,
  EMPTY,
  type Requested,
  toWireMessage,
  toWireRun,
  toWireValues,
  values,
} from "./threads.ts";

const MODES = ["values", "updates", "messages-tuple"] as const;
const modes = z.union([z.enum(MODES), z.array(z.enum(MODES))]).default("values");
/** docs/platform.md, Agent server. Other fields are ignored (measured), except modes of streams that the stand-in lacks. */
const newRun = z.looseObject({
  assistant_id: z.string(),
  input: values,
  command: z.looseObject({ resume: z.unknown().optional() }).nullish(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  multitask_strategy: z.enum(["reject", "enqueue", "interrupt", "rollback"]).nullish(),
  if_not_exists: z.enum(["create", "reject"]).nullish(),
  after_seconds: z.number().nullish(),
  on_completion: z.enum(["delete", "keep"]).nullish(),
  stream_mode: modes,
});
type NewRun = z.output<typeof newRun>;
const cancelling = z.looseObject({ wait: z.string().default("0"), action: z.string().default("interrupt") });
const cancelled = z.looseObject({ thread_id: z.guid(), run_ids: z.array(z.guid()) });
const RUN = "/threads/:thread/runs/:run";

export function runs(engine: RunEngine, isLive: () => boolean): Route[] {
  const route = (...given: [Route["method"], string, Parameters<typeof agentRoute>[3]]) =>
    agentRoute(engine, ...given);
  /** Without a thread in the path, the run has a thread of its own, which goes with it. */
  const start = ({ params, thread }: Requested, wanted: NewRun): Run => {
    const isAlone = params.thread === undefined;
    refuseAssistant(wanted.assistant_id);
    const creates =
      isAlone || (wanted.if_not_exists === "create" && engine.find(params.thread ?? "") === undefined);
    const of: Thread = creates ? engine.createThread(params.thread) : thread();
    const run = engine.start(of, requestOf(wanted));
    if (isAlone && wanted.on_completion !== "keep")
      // After those who wait for its end.
      run.ended.promise.then(() => setImmediate(() => engine.deleteThread(of)));
    return run;
  };
  const begin = (given: Requested, does: (run: Run, wanted: NewRun) => Response | Promise<Response>) => {
    const wanted = checked(newRun, given.body);
    return does(start(given, wanted), wanted);
  };
  const joined = async (run: Run): Promise<Response> => {
    const end = await run.ended.promise;
    if (end === "deleted" && !isLive()) {
      return json({ __error__: { error: "UserRollback", message: "User requested rollback of the run" } });
    }
    return json(run.status === "error" ? { __error__: run.error } : toWireValues(run.thread, run));
  };
  const created = (run: Run) => ({ ...json(toWireRun(run)), headers: locationOf(run) });
  const waited = async (run: Run) => ({ ...(await joined(run)), headers: locationOf(run) });
  const streamed = (run: Run, { stream_mode }: NewRun) =>
    eventStream(eventsOf(run, [stream_mode].flat()), locationOf(run));
  return [
    ...["/threads/:thread/runs", "/runs"].flatMap((url) => [
      route("POST", url, (given) => begin(given, created)),
      route("POST", `${url}/wait`, (given) => begin(given, waited)),
      route("POST", `${url}/stream`, (given) => begin(given, streamed)),
    ]),
    route("POST", "/runs/batch", (given) =>
      json(checked(z.array(newRun), given.body).map((wanted) => toWireRun(start(given, wanted)))),
    ),
    route("POST", "/runs/cancel", ({ body }) => {
      const { thread_id, run_ids } = checked(cancelled, body);
      for (const id of run_ids) engine.cancel(engine.run(thread_id, id), "interrupt");
      return EMPTY;
    }),
    route("GET", RUN, ({ run }) => json(toWireRun(run()))),
    route("DELETE", RUN, ({ run }) => {
      engine.delete(run());
      return EMPTY;
    }),
    // If the client disconnects, the run continues. An unknown run is no 404 (measured).
    route("GET", `${RUN}/join`, ({ thread, params }) => {
      const run = thread().runs.find(({ id }) => id === params.run);
      if (run !== undefined) return joined(run);
      const __error__ = { error: "HTTPException", message: "404: Run not found" };
      return json(isLive() ? { __error__ } : null);
    }),
    route("GET", `${RUN}/stream`, ({ run }) => eventStream(isOpen(run()) ? lastOf(run()) : [])),
    route("POST", `${RUN}/cancel`, async ({ run, query }) => {
      const { wait, action } = checked(cancelling, query, "query");
      const of = run();
      engine.cancel(of, action === "rollback" ? "rollback" : "interrupt");
      if (wait !== "1" && wait !== "true") return { ...EMPTY, status: 202 };
      return isLive() ? json({}) : EMPTY;
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

function requestOf({ input, command, metadata, multitask_strategy, after_seconds }: NewRun): RunRequest {
  return {
    input: input?.messages ?? null,
    resume: command?.resume,
    metadata,
    strategy: multitask_strategy ?? "enqueue",
    holdMs: (after_seconds ?? 0) * 1000,
  };
}

/** Clients read the run's id from this header. */
function locationOf({ id, thread }: Run): Record<string, string> {
  return { "content-location": `/threads/${thread.id}/runs/${id}` };
}

type Event = readonly [name: string, data: unknown];

async function* eventsOf(run: Run, modes: readonly NewRun["stream_mode"][number][]): AsyncGenerator<Event> {
  yield ["metadata", { run_id: run.id, attempt: 1 }];
  await Promise.race([run.started.promise, run.ended.promise]);
  const { thread } = run;
  if (modes.includes("values")) yield ["values", toWireValues(thread)];
  await run.ended.promise;
  const reply = run.reply && toWireMessage(run.reply);
  if (reply && modes.includes("messages-tuple")) yield ["messages", [reply, {}]];
  if (reply && modes.includes("updates")) yield ["updates", { [ASSISTANT.name]: { messages: [reply] } }];
  if (run.error !== null) yield ["error", run.error];
  else if (modes.includes("values")) yield ["values", toWireValues(thread, run)];
}

async function* lastOf(run: Run): AsyncGenerator<Event> {
  await run.ended.promise;
  yield run.error === null ? ["values", toWireValues(run.thread, run)] : ["error", run.error];
}

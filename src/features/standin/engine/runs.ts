import { randomUUID } from "node:crypto";
import { Refusal } from "./refusal.ts";

/**
 * docs/platform.md, Agent server. Only one run of a thread is active. A new run's strategy decides what happens to earlier
 * runs. The trace of a removed run stays billed.
 */
export type RunStatus = "pending" | "running" | "success" | "error" | "interrupted";
export type Strategy = "reject" | "enqueue" | "interrupt" | "rollback";

export interface Message {
  readonly id: string;
  /** Replaces the role: `human`, `ai`, `system` and others (documented). */
  readonly type: string;
  readonly content: string;
}

export interface Thread {
  readonly id: string;
  readonly createdAt: number;
  messages: readonly Message[];
  /** Oldest first. */
  runs: readonly Run[];
}

export interface Run {
  readonly id: string;
  readonly thread: Thread;
  readonly strategy: Strategy;
  readonly input: readonly Message[];
  readonly createdAt: number;
  updatedAt: number;
  status: RunStatus;
  error: string | null;
  /** Messages before this run, for a rollback. */
  before: readonly Message[];
  /** Messages at the end of this run. */
  after: readonly Message[];
  /** Resolves when the run ends; `deleted` if it was removed. */
  readonly ended: PromiseWithResolvers<RunStatus | "deleted">;
  readonly started: PromiseWithResolvers<void>;
}

interface RunRequest {
  readonly thread: Thread;
  readonly input: readonly Pick<Message, "type" | "content">[];
  readonly strategy: Strategy;
}

export class RunEngine {
  readonly #now: () => number;
  readonly #meter: () => void;
  readonly #threads = new Map<string, Thread>();
  readonly #timers = new Map<Run, NodeJS.Timeout>();

  constructor(now: () => number, meter: () => void) {
    this.#now = now;
    this.#meter = meter;
  }

  createThread(id: string = randomUUID()): Thread {
    const thread: Thread = { id, createdAt: this.#now(), messages: [], runs: [] };
    this.#threads.set(id, thread);
    return thread;
  }

  find(threadId: string): Thread | undefined {
    return this.#threads.get(threadId);
  }

  /** An unknown id is refused with 404 and a sentence (seen). */
  thread(threadId: string): Thread {
    const thread = this.#threads.get(threadId);
    if (thread !== undefined) return thread;
    throw new Refusal(404, { detail: `Thread with ID ${threadId} not found` });
  }

  run(threadId: string, runId: string): Run {
    const run = this.thread(threadId).runs.find((one) => one.id === runId);
    if (run === undefined) throw new Refusal(404, { detail: `Run with ID ${runId} not found` });
    return run;
  }

  runById(taskId: string): Run | undefined {
    return [...this.#threads.values()].flatMap(({ runs }) => runs).find(({ id }) => id === taskId);
  }

  /** The run begins at once if the thread is idle. */
  start({ thread, input, strategy }: RunRequest): Run {
    const earlier = thread.runs.filter(isOpen);
    if (earlier.length > 0) this.#decide(earlier, strategy);
    const at = this.#now();
    const run: Run = {
      id: randomUUID(),
      thread,
      strategy,
      input: input.map((message) => ({ id: randomUUID(), ...message })),
      createdAt: at,
      updatedAt: at,
      status: "pending",
      error: null,
      before: [],
      after: [],
      ended: Promise.withResolvers(),
      started: Promise.withResolvers(),
    };
    thread.runs = [...thread.runs, run];
    // The run starts after the response, so that a client first sees it pending.
    setImmediate(() => this.#next(thread));
    return run;
  }

  /** `rollback` also removes the run. */
  cancel(run: Run, action: "interrupt" | "rollback"): void {
    if (!isOpen(run)) {
      // A finished run cannot be cancelled (documented); the status is our guess.
      throw new Refusal(409, { detail: `Run ${run.id} has ended: ${run.status}` });
    }
    if (action === "rollback") this.#rollBack(run);
    else this.#end(run, "interrupted");
    setImmediate(() => this.#next(run.thread));
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    for (const { runs } of this.#threads.values()) for (const run of runs) run.ended.resolve("deleted");
    this.#threads.clear();
  }

  #decide(earlier: readonly Run[], strategy: Strategy): void {
    if (strategy === "reject") {
      const detail =
        "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.";
      throw new Refusal(409, { detail });
    }
    if (strategy === "enqueue") return;
    // Newest first: each run restores the state before it.
    for (const run of earlier.toReversed()) {
      if (strategy === "rollback") this.#rollBack(run);
      else this.#end(run, "interrupted");
    }
  }

  #next(thread: Thread): void {
    if (!this.#threads.has(thread.id) || thread.runs.some((run) => run.status === "running")) return;
    const run = thread.runs.find((one) => one.status === "pending");
    if (run === undefined) return;
    this.#meter();
    run.status = "running";
    run.updatedAt = this.#now();
    run.before = thread.messages;
    thread.messages = [...thread.messages, ...run.input];
    run.started.resolve();
    const { delayMs, reply } = perform(run.input.at(-1)?.content ?? "");
    const finish = () => {
      if (reply === undefined) run.error = "The input asks for a failure";
      else thread.messages = [...thread.messages, { id: randomUUID(), type: "ai", content: reply }];
      this.#end(run, run.error === null ? "success" : "error");
      this.#next(thread);
    };
    this.#timers.set(run, setTimeout(finish, delayMs));
  }

  #end(run: Run, status: RunStatus): void {
    this.#stop(run);
    run.status = status;
    run.after = run.thread.messages;
    run.updatedAt = this.#now();
    run.ended.resolve(status);
  }

  #rollBack(run: Run): void {
    this.#stop(run);
    if (run.status === "running") run.thread.messages = run.before;
    run.updatedAt = this.#now();
    run.thread.runs = run.thread.runs.filter((one) => one !== run);
    run.ended.resolve("deleted");
  }

  #stop(run: Run): void {
    clearTimeout(this.#timers.get(run));
    this.#timers.delete(run);
  }
}

function isOpen({ status }: Run): boolean {
  return status === "pending" || status === "running";
}

/** Shows the assistant's id, never its name (documented). */
export function toWireRun(run: Run): object {
  return {
    run_id: run.id,
    thread_id: run.thread.id,
    assistant_id: ASSISTANT.id,
    created_at: new Date(run.createdAt).toISOString(),
    updated_at: new Date(run.updatedAt).toISOString(),
    status: run.status,
    multitask_strategy: run.strategy,
  };
}

/**
 * The assistant uses no model and no network (our own). It repeats the text. `delay=<ms>` in the text makes it slow, `fail`
 * makes it fail.
 */
export const ASSISTANT = {
  /** Requests use the name or the id (docs/platform.md, Agent server). The id is the one in the platform's examples. */
  name: "agent",
  id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
  description: "Echoes the text it gets.",
} as const;

/** Longer than any test. */
const LONGEST_MS = 600_000;

export function isAssistant(nameOrId: string): boolean {
  return nameOrId === ASSISTANT.name || nameOrId === ASSISTANT.id;
}

function perform(text: string): { delayMs: number; reply: string | undefined } {
  const delayMs = Math.min(Number(/\bdelay=(\d{1,9})\b/.exec(text)?.[1] ?? 0), LONGEST_MS);
  return { delayMs, reply: /\bfail\b/i.test(text) ? undefined : `Echo: ${text}` };
}

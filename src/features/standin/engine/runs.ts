import { randomUUID } from "node:crypto";
import { Refusal } from "./refusal.ts";

/**
 * docs/platform.md, Agent server. Only one run of a thread is active. A new run's strategy decides what happens to
 * earlier runs. The trace of a removed run stays billed.
 */
export type RunStatus = "pending" | "running" | "success" | "error" | "interrupted";
export type Strategy = "reject" | "enqueue" | "interrupt" | "rollback";

export interface Message {
  readonly id: string;
  /** Replaces the role: `human`, `ai`, `system`. */
  readonly type: string;
  readonly content: unknown;
  /** Undefined: the state was written without a run. */
  readonly run?: Run;
}

interface State {
  readonly messages: readonly Message[];
  readonly at: number;
  readonly id: string;
  readonly run?: Run;
}

export interface Thread {
  readonly id: string;
  readonly createdAt: number;
  updatedAt: number;
  metadata: Readonly<Record<string, unknown>>;
  states: readonly State[];
  runs: readonly Run[];
}

export interface Run {
  readonly id: string;
  readonly thread: Thread;
  readonly request: RunRequest;
  readonly createdAt: number;
  /** The A2A task: of an answer, that of the question. */
  readonly task: string;
  updatedAt: number;
  status: RunStatus;
  error: { readonly error: string; readonly message: string } | null;
  question: { readonly id: string; readonly value: string } | null;
  reply: Message | null;
  /** `deleted`: the run was removed. */
  readonly ended: PromiseWithResolvers<RunStatus | "deleted">;
  readonly started: PromiseWithResolvers<void>;
}

export interface RunRequest {
  /** Null: a run without input fails. */
  readonly input: readonly Pick<Message, "type" | "content">[] | null;
  readonly strategy: Strategy;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The answer to the question of the thread's last run. */
  readonly resume?: unknown;
  readonly holdMs?: number;
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

  get threads(): readonly Thread[] {
    return [...this.#threads.values()];
  }

  createThread(id: string = randomUUID(), metadata: Thread["metadata"] = {}): Thread {
    const at = this.#now();
    const thread: Thread = { id, createdAt: at, updatedAt: at, metadata, states: [], runs: [] };
    this.#threads.set(id, thread);
    return thread;
  }

  copy(of: Thread): Thread {
    const thread = this.createThread(undefined, of.metadata);
    thread.states = of.states;
    return thread;
  }

  deleteThread(thread: Thread): void {
    for (const run of thread.runs) this.delete(run);
    this.#threads.delete(thread.id);
  }

  find(threadId: string): Thread | undefined {
    return this.#threads.get(threadId);
  }

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

  /** The run begins at once if the thread is idle. */
  start(thread: Thread, request: RunRequest): Run {
    const earlier = thread.runs.filter(isOpen);
    if (earlier.length > 0) this.#decide(earlier, request.strategy);
    const at = this.#now();
    const id = randomUUID();
    const run: Run = {
      id,
      thread,
      request,
      task: request.resume === undefined ? id : (thread.runs.at(-1)?.task ?? id),
      createdAt: at,
      updatedAt: at,
      status: "pending",
      error: null,
      question: null,
      reply: null,
      ended: Promise.withResolvers(),
      started: Promise.withResolvers(),
    };
    thread.runs = [...thread.runs, run];
    thread.metadata = { ...thread.metadata, graph_id: ASSISTANT.name, assistant_id: ASSISTANT.id };
    const { holdMs = 0 } = request;
    const begin = () => {
      this.#timers.delete(run);
      this.#next(thread);
    };
    // The run starts after the response, so that a client first sees it pending.
    if (holdMs > 0) this.#timers.set(run, setTimeout(begin, holdMs));
    else setImmediate(begin);
    return run;
  }

  /** `rollback` also removes the run. A finished run cannot be cancelled. */
  cancel(run: Run, action: "interrupt" | "rollback"): void {
    if (!isOpen(run)) throw new Refusal(404, { detail: `Run with ID ${run.id} has ended` });
    if (action === "rollback") this.#remove(run);
    else this.#interrupt(run);
    setImmediate(() => this.#next(run.thread));
  }

  delete(run: Run): void {
    this.#remove(run);
    setImmediate(() => this.#next(run.thread));
  }

  write(thread: Thread, added: readonly Pick<Message, "type" | "content">[], run?: Run): State {
    const messages = added.map((one) => ({ id: randomUUID(), ...one, ...(run && { run }) }));
    const state = { messages: [...messagesOf(thread), ...messages], at: this.#now(), id: randomUUID() };
    thread.states = [...thread.states, { ...state, ...(run && { run }) }];
    thread.updatedAt = state.at;
    return state;
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
    for (const run of earlier) strategy === "rollback" ? this.#remove(run) : this.#interrupt(run);
  }

  #next(thread: Thread): void {
    if (!this.#threads.has(thread.id) || thread.runs.some((run) => run.status === "running")) return;
    const run = thread.runs.find((one) => one.status === "pending" && !this.#timers.has(one));
    if (run === undefined) return;
    this.#meter();
    run.status = "running";
    run.updatedAt = this.#now();
    const { input, resume } = run.request;
    if (thread.states.length === 0) this.write(thread, [], run);
    if (resume === undefined) this.write(thread, input ?? [], run);
    run.started.resolve();
    const { delayMs, ...outcome } = perform(input, resume);
    const finish = () => {
      run.error = outcome.error ?? null;
      run.question = outcome.question === undefined ? null : { id: hex(), value: outcome.question };
      if (outcome.reply !== undefined) {
        run.reply = this.write(thread, [{ type: "ai", content: outcome.reply }], run).messages.at(-1) ?? null;
      }
      this.#end(run, run.error === null ? "success" : "error");
      this.#next(thread);
    };
    this.#timers.set(run, setTimeout(finish, delayMs));
  }

  #interrupt(run: Run): void {
    run.error = { error: "UserInterrupt", message: "User interrupted the run" };
    this.#end(run, "interrupted");
  }

  #end(run: Run, status: RunStatus): void {
    this.#stop(run);
    run.status = status;
    run.thread.updatedAt = run.updatedAt = this.#now();
    run.ended.resolve(status);
  }

  #remove(run: Run): void {
    this.#stop(run);
    const { thread } = run;
    thread.states = thread.states.filter((state) => state.run !== run);
    thread.runs = thread.runs.filter((one) => one !== run);
    run.ended.resolve("deleted");
  }

  #stop(run: Run): void {
    clearTimeout(this.#timers.get(run));
    this.#timers.delete(run);
  }
}

export function isOpen({ status }: Run): boolean {
  return status === "pending" || status === "running";
}

export function messagesOf({ states }: Thread): readonly Message[] {
  return states.at(-1)?.messages ?? [];
}

const hex = () => randomUUID().replaceAll("-", "");

/**
 * The assistant uses no model and no network (our own). It repeats the text. `delay=<ms>` in the text makes it slow, `fail`
 * makes it fail, `question` makes it ask.
 */
export const ASSISTANT = {
  /** The id of this name is the same on every server. */
  name: "agent",
  id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
} as const;

/** Longer than any test. */
const LONGEST_MS = 600_000;

interface Outcome {
  readonly delayMs: number;
  readonly reply?: string;
  readonly question?: string;
  readonly error?: { readonly error: string; readonly message: string };
}

function perform(input: RunRequest["input"], resume: unknown): Outcome {
  if (resume !== undefined) return { delayMs: 0, reply: `Answer: ${resume}` };
  if (input === null) return { delayMs: 0, error: { error: "EmptyInputError", message: "No input" } };
  const stranger = input.find(({ type }) => !["human", "ai", "system"].includes(type));
  if (stranger !== undefined) {
    return {
      delayMs: 0,
      error: { error: "ValueError", message: `Unexpected message type: ${stranger.type}` },
    };
  }
  const text = textOf(input.at(-1)?.content ?? "");
  const delayMs = Math.min(Number(/\bdelay=(\d{1,9})\b/.exec(text)?.[1] ?? 0), LONGEST_MS);
  if (/\bfail\b/i.test(text)) {
    return { delayMs, error: { error: "ValueError", message: "The input asks for a failure" } };
  }
  return /\bquestion\b/i.test(text)
    ? { delayMs, question: "Which one?" }
    : { delayMs, reply: `Echo: ${text}` };
}

export function textOf(content: unknown): string {
  if (!Array.isArray(content)) return `${content}`;
  return content.map((part) => (typeof part?.text === "string" ? part.text : "")).join("");
}

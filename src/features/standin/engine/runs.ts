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
  readonly run: Run;
}

export interface Thread {
  readonly id: string;
  readonly createdAt: number;
  /** A run that is removed takes its messages with it. */
  messages: readonly Message[];
  /** Oldest first. */
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
  readonly input: readonly Pick<Message, "type" | "content">[];
  readonly strategy: Strategy;
  /** The answer to the question of the thread's last run. */
  readonly resume?: unknown;
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
    // The run starts after the response, so that a client first sees it pending.
    setImmediate(() => this.#next(thread));
    return run;
  }

  #write(run: Run, added: RunRequest["input"]): void {
    const { thread } = run;
    thread.messages = [...thread.messages, ...added.map((one) => ({ id: randomUUID(), ...one, run }))];
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
    const run = thread.runs.find((one) => one.status === "pending");
    if (run === undefined) return;
    this.#meter();
    run.status = "running";
    run.updatedAt = this.#now();
    const { input, resume } = run.request;
    if (resume === undefined) this.#write(run, input);
    run.started.resolve();
    const { delayMs, ...outcome } = perform(input, resume);
    const finish = () => {
      run.error = outcome.error ?? null;
      run.question = outcome.question === undefined ? null : { id: hex(), value: outcome.question };
      if (outcome.reply !== undefined) {
        this.#write(run, [{ type: "ai", content: outcome.reply }]);
        run.reply = thread.messages.at(-1) ?? null;
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
    run.updatedAt = this.#now();
    run.ended.resolve(status);
  }

  #remove(run: Run): void {
    this.#stop(run);
    const { thread } = run;
    thread.messages = thread.messages.filter((one) => one.run !== run);
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

import { type Telemetry, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { EtlError } from "../src/errors.ts";
import type { WarnSparingly } from "../src/log.ts";
import type { Share } from "../src/pipeline/source/rate-shares.ts";
import { pauseOf } from "../src/pipeline/source/retry.ts";
import { createHandler, type DoneJob } from "./handler.ts";
import type { JobContext } from "./job.ts";
import { PREFIX, queueName } from "./queues.ts";

/** Jobs of one queue under way at once; how many requests that makes is the limiter's. */
const CONCURRENCY = 4;

interface WorkersOptions {
  readonly slug: string;
  readonly contexts: Readonly<Record<"control" | "fetch", JobContext>>;
  /** What the fetch queue's limiter lets through. */
  readonly limiter: Share;
  /** A connection for one worker alone. */
  readonly connect: (name: string) => Redis;
  readonly telemetry: { readonly telemetry?: Telemetry };
  readonly warn: WarnSparingly;
  readonly watcher: {
    readonly onTaken: () => void;
    readonly onDone: (done: DoneJob) => void;
    readonly onFailed: (failed: { job: string; code: string }) => void;
  };
}

/** Takes jobs of both queues of a source until closed, which waits for those under way. */
export function startWorkers(options: WorkersOptions): () => Promise<void> {
  const { slug, contexts, limiter, connect, telemetry, warn, watcher } = options;
  const workers = (["control", "fetch"] as const).map((kind) => {
    const { log } = contexts[kind];
    const worker = new Worker(queueName(kind, slug), createHandler(contexts[kind], watcher), {
      connection: connect(`${kind} worker`),
      prefix: PREFIX,
      concurrency: CONCURRENCY,
      ...telemetry,
      lockDuration: 30_000,
      stalledInterval: 5_000,
      maxStalledCount: 20,
      ...(kind === "fetch" ? { limiter } : {}),
      settings: {
        backoffStrategy: (attempts, _type, error) =>
          error instanceof EtlError ? pauseOf(error, attempts) : 1000 * 2 ** Math.min(attempts, 8),
      },
    });
    worker.on("error", (error) => warn({ code: "worker_error", at: worker.name, reason: error.message }));
    // Redis was away for longer than locks last, so another worker has this job: what it still waits for only keeps
    // its place. Its writes are fenced in Postgres either way.
    worker.on("lockRenewalFailed", (jobs) => {
      for (const job of jobs) worker.cancelJob(job, "lock_lost");
    });
    worker.on("failed", (job, error) => {
      const code = error instanceof EtlError ? error.code : "failed";
      log.warn(
        { job: job?.id, name: job?.name, attempt: job?.attemptsMade, code, reason: error.message },
        "job failed",
      );
      watcher.onFailed({ job: job?.name ?? "", code });
    });
    return worker;
  });
  return async () => {
    // The aborted signal hands back at once what is under way.
    await Promise.all(workers.map((worker) => worker.close()));
  };
}

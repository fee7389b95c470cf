import { type Telemetry, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { EtlError } from "../src/errors.ts";
import type { WarnSparingly } from "../src/log.ts";
import type { Share } from "../src/pipeline/source/rate-shares.ts";
import { pauseOf } from "../src/pipeline/source/retry.ts";
import { createHandler, type JobWatcher } from "./handler.ts";
import type { JobContext } from "./job.ts";
import { PREFIX, type QueueKind, queueName } from "./queues.ts";

/** Jobs of one queue that run at once; the limiter decides how many requests they send. */
const CONCURRENCY = 4;

interface WorkersInput {
  readonly slug: string;
  readonly contexts: Readonly<Record<QueueKind, JobContext>>;
  /** Of the fetch queue. */
  readonly limiter: Share;
  /** Opens a connection, which the workers close; a worker needs one of its own. */
  readonly connect: (name: string) => Redis;
  readonly telemetry: { readonly telemetry?: Telemetry };
  readonly warn: WarnSparingly;
  readonly watcher: JobWatcher;
}

/** Takes jobs from both queues of a source. The closer waits for running jobs: abort their signal before. */
export function startWorkers(input: WorkersInput): () => Promise<void> {
  const closers = (["control", "fetch"] as const).map((kind) => startWorker(kind, input));
  return async () => {
    await Promise.all(closers.map((close) => close()));
  };
}

function startWorker(kind: QueueKind, input: WorkersInput): () => Promise<void> {
  const { slug, contexts, limiter, connect, telemetry, warn, watcher } = input;
  const { log } = contexts[kind];
  const connection = connect(`${kind} worker`);
  const worker = new Worker(queueName(kind, slug), createHandler(contexts[kind], watcher), {
    connection,
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
  // Redis was away for longer than locks last, so another worker has this job. Cancelling frees its place here; Postgres
  // refuses its writes in any case.
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
  return () => worker.close().finally(() => connection.disconnect());
}

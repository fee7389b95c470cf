import { setTimeout as pause } from "node:timers/promises";
import { type Environment, startService, takenBy } from "./scale-process.ts";

export interface WorkersRun {
  readonly workers: number;
  /** Requests a second that were answered and loaded. */
  readonly rate: number;
  readonly records: number;
  /** Of all workers, by request. */
  readonly cpuMs: number;
  /** Of the worker that held most. */
  readonly peakMb: number;
  readonly redisMb: number;
}

interface Watched {
  /** One number that a query returns. */
  readonly value: (query: string) => Promise<number>;
  readonly redisMb: () => Promise<number>;
}

const ENDED = "SELECT count(*) FROM usage.fetch WHERE outcome = 'loaded'";

/** Real processes on the real queue for some seconds, from the first load of the last worker that starts. */
export async function runWorkers(
  environment: Environment,
  { workers, seconds }: { workers: number; seconds: number },
  { value, redisMb }: Watched,
): Promise<WorkersRun> {
  const services = [
    startService(environment, "--role", "scheduler"),
    ...Array.from({ length: workers }, () => startService(environment, "--role", "worker")),
  ];
  try {
    const before = await value(ENDED);
    while (services.some(({ said }) => !said().includes("serving as"))) await pause(200);
    while ((await value(ENDED)) === before) await pause(200);
    // What the rate limit left over while nothing was running is used up.
    await pause(10_000);
    const taking = services.slice(1).map(({ child }) => child);
    const [first, startedAt] = [await count(value), performance.now()];
    const cpuBefore = await Promise.all(taking.map(takenBy));
    let most = 0;
    while (performance.now() - startedAt < seconds * 1000) {
      most = Math.max(most, await redisMb());
      await pause(500);
    }
    const [last, ms] = [await count(value), performance.now() - startedAt];
    const cpuAfter = await Promise.all(taking.map(takenBy));
    const requests = last.requests - first.requests;
    const cpuMs = sum(cpuAfter.map((one) => one.cpuMs)) - sum(cpuBefore.map((one) => one.cpuMs));
    return {
      workers,
      rate: (requests * 1000) / ms,
      records: last.records - first.records,
      cpuMs: cpuMs / Math.max(1, requests),
      peakMb: Math.max(...cpuAfter.map((one) => one.peakMb)),
      redisMb: most,
    };
  } finally {
    await Promise.all(services.map(({ close }) => close()));
  }
}

async function count(value: Watched["value"]) {
  return {
    requests: await value(ENDED),
    records: await value("SELECT coalesce(sum(records), 0) FROM usage.fetch WHERE outcome = 'loaded'"),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { poll } from "../../support/poll.ts";
import { urlOf } from "../../support/service.ts";
import { differences, inLedger, inStore, together } from "../../support/tables.ts";
import { type Allowed, all } from "./fault.ts";
import { PASSWORD } from "./servers.ts";
import { API_KEY, type Worker, type World } from "./world.ts";

/** What must hold once everything is quiet again, read past the product. */

/** Lines of one code and minute that a process may log. */
const LINES_A_MINUTE = 20;
const EXIT_WITHIN_MS = 25_000;

async function whatIsLeft(world: World): Promise<string[]> {
  const { truth, range, workspaceIds } = world;
  const days = { start: range.start, end: Math.ceil(range.end / DAY_MS) * DAY_MS };
  const expected = together(
    inLedger(truth, { stride: "hour", range, workspaceIds }),
    inLedger(truth, { stride: "day", range: days, workspaceIds }),
  );
  const left = differences(await inStore(world, ["hour", "day"]), expected);
  const [stored] = await world.sql<Record<string, number>>(`
    SELECT (SELECT count(*) FROM usage.failure)::integer AS failures,
           (SELECT count(*) FROM usage.fetch_task WHERE state IN ('waiting', 'queued') AND created_at < now() - interval '30 s')::integer
             AS "tasks that wait for 30 s",
           (SELECT count(*) FROM usage.backfill WHERE state = 'running')::integer AS "running backfills",
           (SELECT count(*) FROM reporting_detail.usage_coverage_daily WHERE status NOT IN ('ok', 'empty', 'provisional'))::integer
             AS "days that are not loaded"`);
  for (const [what, count] of Object.entries(stored ?? {})) if (count > 0) left.push(`${count} ${what}`);
  for (const worker of all(world)) {
    const responses = await Promise.all(
      ["/livez", "/readyz", "/metrics"].map((path) => health(worker, path)),
    );
    left.push(...responses.filter((response) => response !== undefined));
  }
  return left;
}

/** Undefined if it responds with 200 within 5 s. */
export async function health(worker: Worker, path: string): Promise<string | undefined> {
  try {
    const response = await fetch(urlOf(worker.running) + path, { signal: AbortSignal.timeout(5_000) });
    const text = await response.text();
    return response.ok ? undefined : `${path} ${response.status} ${text}`;
  } catch (error) {
    return `${path} ${(error as Error).message}`;
  }
}

/** Resolves to how long it took until nothing was left, seconds. */
export async function untilIdle(world: World, withinS: number): Promise<number> {
  const since = performance.now();
  const limit = process.env.CHAOS_PATIENCE === undefined ? withinS : Number(process.env.CHAOS_PATIENCE);
  let left: string[] = [];
  await poll(
    async () => {
      left = await whatIsLeft(world).catch((error: Error) => [error.message]);
      return left.length === 0;
    },
    { deadlineMs: limit * 1_000, everyMs: 500 },
  ).catch(() => {
    throw new Error(`not well again within ${limit} s:\n${left.join("\n")}`);
  });
  return (performance.now() - since) / 1_000;
}

/** Everything that must hold beside the figures. Ends the workers. */
export async function checkEverything(world: World, allowed: Allowed = {}): Promise<void> {
  const [odd] = await world.sql<{ restatements: number; poisoned: number; failed: number }>(`
    SELECT (SELECT count(*) FROM usage.restatement)::integer AS restatements,
           (SELECT count(*) FROM usage.fetch_task WHERE code = 'task_poisoned')::integer AS poisoned,
           (SELECT count(*) FROM usage.fetch_task WHERE state = 'failed')::integer AS failed`);
  const failedJobs = await world.keys.zcard("{usage-etl}:fetch-default:failed");
  const found = allowed.failures === true ? { ...odd, failed: 0, failedJobs: 0 } : { ...odd, failedJobs };
  expect(found).toEqual({ restatements: 0, poisoned: 0, failed: 0, failedJobs: 0 });
  await poll(async () => (await whatIsHeld(world)).length === 0, { deadlineMs: 60_000 }).catch(async () => {
    throw new Error(`held a minute later: ${(await whatIsHeld(world)).join(", ")}`);
  });
  for (const worker of world.workers) expect(floods(worker)).toEqual([]);
  await checkSecrets(world);
  for (const worker of world.workers) await checkExit(worker);
}

const QUEUES = ["control-default", "fetch-default"];
const MOST_MB = 350;

/** What a process that has nothing to do must not hold: jobs, transactions of Postgres, memory; and it says nothing. */
async function whatIsHeld(world: World): Promise<string[]> {
  const alive = all(world);
  const warnings = () => alive.reduce((sum, one) => sum + one.log().filter(isWarning).length, 0);
  const before = warnings();
  await pause(3_000);
  const [idle] = await world.sql<{ sessions: number }>(
    `SELECT count(*)::integer AS sessions FROM pg_stat_activity
     WHERE application_name LIKE 'usage-etl%' AND state LIKE 'idle in transaction%' AND state_change < now() - interval '2 s'`,
  );
  const active = await Promise.all(
    QUEUES.map(async (queue) => ({ queue, jobs: await world.keys.llen(`{usage-etl}:${queue}:active`) })),
  );
  return [
    ...active.filter(({ jobs }) => jobs > 1).map(({ queue, jobs }) => `${jobs} jobs of ${queue}`),
    ...((idle?.sessions ?? 0) > 0 ? [`${idle?.sessions} transactions`] : []),
    ...(warnings() > before ? ["a log that grows"] : []),
    ...alive.flatMap(({ running }) => {
      const megabytes = memoryOf(running.process.pid as number);
      return megabytes > MOST_MB ? [`${megabytes} MB`] : [];
    }),
  ];
}

function memoryOf(pid: number): number {
  const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, "utf8") : "";
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_000);
}

function isWarning({ level = 0 }: ReturnType<Worker["log"]>[number]): boolean {
  return level >= 40 || ["warn", "error", "fatal"].includes(String(level));
}

function floods(worker: Worker): string[] {
  const counts = new Map<string, number>();
  for (const { time = "", code, msg } of worker.log().filter(isWarning)) {
    const about = `${code ?? msg} ${time.slice(0, 16)}`;
    counts.set(about, (counts.get(about) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > LINES_A_MINUTE)
    .map(([about, count]) => `${about}: ${count} lines`);
}

async function checkExit(worker: Worker): Promise<void> {
  if (worker.isGone) return;
  const since = performance.now();
  worker.isGone = true;
  worker.running.process.kill("SIGTERM");
  const { code } = await worker.running.ended;
  expect([code, performance.now() - since < EXIT_WITHIN_MS]).toEqual([0, true]);
}

async function checkSecrets({ workers, keys }: World): Promise<void> {
  const found = (text: string) => [PASSWORD, API_KEY].filter((secret) => text.includes(secret));
  for (const { running } of workers) {
    expect(found(running.said.stdout + running.said.stderr)).toEqual([]);
  }
  const { stdout } = spawnSync("ps", ["-eo", "args"], { encoding: "utf8" });
  expect(found(stdout)).toEqual([]);
  for await (const names of keys.scanStream({ match: "*", count: 1_000 })) {
    for (const name of names as string[]) {
      const dump = await keys.dumpBuffer(name);
      expect(found(dump?.toString("latin1") ?? "")).toEqual([]);
    }
  }
}

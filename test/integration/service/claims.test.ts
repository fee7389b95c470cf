import { expect, test } from "vitest";
import { poll } from "../../support/poll.ts";
import { end, type ServiceBench, setupService } from "../../support/service.ts";

async function serveHanging() {
  const bench = await setupService({ days: 5, workspaces: 1, environment: { USAGE_HOURLY_FOR: "P5D" } });
  // All of them: a process that ends may still take a task, and give it back.
  bench.standin.faults.script({ fault: { kind: "hang" }, times: 1_000, match: { stride: "hour" } });
  const service = await bench.serve();
  await openClaims(bench, 4);
  return { bench, service };
}

async function openClaims(bench: ServiceBench, count: number): Promise<void> {
  const claims = async () =>
    Number(await bench.count("SELECT coalesce(sum(open_claims), 0) FROM usage.fetch_task"));
  // Those by hour wait for a response. Others may be at work before them.
  const running = () =>
    bench.count("SELECT count(*) FROM usage.fetch WHERE outcome = 'running' AND stride = 'hour'");
  await poll(async () => (await claims()) === count && (await running()) >= 4, {
    deadlineMs: 90_000,
    everyMs: 50,
  });
}

/** Takes the locks of all fetch jobs, as if they had run out. */
async function loseLocks({ redis }: ServiceBench): Promise<void> {
  await redis.del(...(await redis.keys("{usage-etl}:fetch-default:*:lock")));
}

test("SIGTERM hands the claims of running fetch tasks back, SIGKILL leaves them open", async () => {
  const { bench, service } = await serveHanging();
  expect((await end(service, "SIGTERM")).code).toBe(0);
  expect(await bench.count("SELECT sum(open_claims) FROM usage.fetch_task")).toBe(0);

  const next = await bench.serve();
  await openClaims(bench, 4);
  await end(next, "SIGKILL");
  expect(await bench.count("SELECT sum(open_claims) FROM usage.fetch_task")).toBe(4);
  bench.standin.faults.clear();
  await bench.serve();
  await bench.loaded();
});

test("a process that stood still until its locks were lost leaves its claims open", async () => {
  const { bench, service } = await serveHanging();
  const stoppedAt = performance.now();
  service.process.kill("SIGSTOP");
  await loseLocks(bench);
  await poll(() => performance.now() - stoppedAt > 12_000, { deadlineMs: 20_000, everyMs: 100 });
  service.process.kill("SIGCONT");
  await openClaims(bench, 8);
  await end(service, "SIGKILL");
});

test("a process that lost its locks through Redis alone hands its claims back", async () => {
  const { bench, service } = await serveHanging();
  await loseLocks(bench);
  const requested = () => bench.count("SELECT count(*) FROM usage.fetch");
  await poll(async () => (await requested()) >= 8, { deadlineMs: 90_000, everyMs: 50 });
  await openClaims(bench, 4);
  await end(service, "SIGKILL");
});

import { expect, test } from "vitest";
import { enqueueJob } from "../../../jobs/enqueue.ts";
import type { FaultStep } from "../../../src/local/standin/faults.ts";
import { usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { eachRecord, startProxy } from "../../support/proxy.ts";
import { daysAgo, type ServiceBench, setupService } from "../../support/service.ts";

/** A backfill with tasks that cannot be loaded: the others are, and these are shown with their reason. */

const DAY_MS = 86_400_000;
const FROM = `${daysAgo(20)}T00:00:00Z`;

/** Syncs are rare, since their tasks go before those of a backfill. */
const OPTIONS = { days: 30, workspaces: 2, environment: { USAGE_SYNC_EVERY: "PT1M" } };

interface Shown {
  readonly state: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly failedTasks: {
    groupBy: string;
    from: string;
    to: string;
    workspaceIds: string[];
    code: string;
    message: string;
  }[];
}

/** Runs a backfill of five days by project and hour to its end, through the queue. */
async function backfill(bench: ServiceBench): Promise<{ code: number | null; said: Shown }> {
  const range = ["--from", daysAgo(20), "--to", daysAgo(15), "--stride", "hour", "--group-by", "project"];
  const backfillId = await bench.enterBackfill(...range);
  const state = `SELECT state FROM usage.backfill WHERE backfill_id = ${backfillId}`;
  const queue = await bench.openQueue("control");
  await poll(
    async () => {
      // Enqueues splits at once. By schedule each waits up to 5 s, and five of them lead to one hour.
      await queue.add(enqueueJob.name, {}, enqueueJob.options);
      return (await bench.value(state)) === "done";
    },
    { deadlineMs: 150_000, everyMs: 500 },
  );
  const show = ["backfill", "show", String(backfillId), "--json"];
  const { code, stdout } = await usageEtl(show, bench.environment);
  return { code, said: (JSON.parse(stdout) as [Shown])[0] };
}

/** Serves a bench whose stand-in refuses a window of the backfill with that fault every time. */
async function backfillWith(fault: FaultStep["fault"]) {
  const bench = await setupService(OPTIONS);
  const match = { path: "granular-usage", query: { start_time: FROM, group_by: "project" } };
  bench.standin.faults.script({ fault, times: 1_000, match });
  await bench.serve();
  const { code, said } = await backfill(bench);
  const workspaces = await bench.count("SELECT count(*) FROM usage.workspace");
  expect(code).toBe(3);
  expect(said).toMatchObject({ failed: workspaces, done: said.total - workspaces });
  expect(said.failedTasks).toHaveLength(workspaces);
  return { bench, said, workspaces };
}

test("a window that is refused with 400 fails for each workspace, and every other task is loaded", async () => {
  const body = '{"detail":"no such bucket"}';
  const { said } = await backfillWith({
    kind: "status",
    status: 400,
    body,
    content_type: "application/json",
  });
  for (const task of said.failedTasks) {
    expect(task).toMatchObject({ groupBy: "project", from: FROM });
    expect(task.code).not.toBe("");
    expect(task.message).toContain("400");
  }
});

test("a window that is always answered with 500 fails after eight requests, and every other task is loaded", async () => {
  // `retry_after: 0` saves the pauses, which test/unit/pipeline/source/retries.test.ts checks.
  const fault = { kind: "status", status: 500, retry_after: 0 } as const;
  const { bench, said, workspaces } = await backfillWith(fault);
  for (const task of said.failedTasks) {
    expect(task).toMatchObject({ groupBy: "project", from: FROM, code: "server_error" });
    expect(task.message).toContain("answered 500");
  }
  const sent = `SELECT count(*) FROM usage.fetch WHERE group_by = 'project' AND period_start = '${FROM}' AND status = 500`;
  expect(await bench.count(sent)).toBe(8 * workspaces);
});

test("a record that fails its schema costs one bucket of one workspace", async () => {
  const bench = await setupService(OPTIONS);
  // The first project's record that comes from the third day: its workspace and hour.
  let bad: { bucket: string; workspaceId: string; id: string | null } | undefined;
  const proxy = await startProxy(
    bench.standin.url,
    eachRecord((record, url) => {
      const [workspaceId = "", ...others] = url.searchParams.getAll("workspace_ids");
      const { time_bucket: bucket, dimensions } = record;
      const id = dimensions.project_id ?? null;
      const [from, to] = ["start_time", "end_time"].map((name) =>
        Date.parse(url.searchParams.get(name) ?? ""),
      );
      const isHourly = Number(to) - Number(from) < DAY_MS;
      if (url.searchParams.get("group_by") !== "project" || others.length > 0 || !isHourly) return record;
      if (bucket.startsWith(daysAgo(18))) bad ??= { bucket, workspaceId, id };
      const isBad = bad?.bucket === bucket && bad.workspaceId === workspaceId && bad.id === id;
      return isBad ? { ...record, traces: -1 } : record;
    }),
  );
  await bench.serve({ environment: { USAGE_BASE_URL: proxy.url } });
  const { code, said } = await backfill({
    ...bench,
    environment: { ...bench.environment, USAGE_BASE_URL: proxy.url },
  });
  if (bad === undefined) throw new Error("no record was made bad");
  const start = Date.parse(bad.bucket);
  const instant = (ms: number) => new Date(ms).toISOString().replace(".000Z", "Z");
  expect(code).toBe(3);
  expect(said).toMatchObject({ failed: 1, done: said.total - 1 });
  expect(said.failedTasks).toMatchObject([
    {
      groupBy: "project",
      from: instant(start),
      to: instant(start + 3_600_000),
      workspaceIds: [bad.workspaceId],
      code: "answer_invalid",
    },
  ]);
  expect(said.failedTasks[0]?.message).toContain("traces");
});

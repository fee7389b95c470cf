import { expect, test } from "vitest";
import { usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { eachRecord, startProxy } from "../../support/proxy.ts";
import { type ServiceBench, setupService } from "../../support/service.ts";

/** A backfill through the queue with slices that cannot be loaded: the rest is, and they are shown with their reason. */

const DAY_MS = 86_400_000;
const LONG = 240_000;

function daysAgo(days: number): string {
  return new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
}

const FROM = `${daysAgo(20)}T00:00:00Z`;

interface Shown {
  readonly state: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly failedSlices: {
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
  const { environment } = bench;
  const range = ["--from", daysAgo(20), "--to", daysAgo(15), "--stride", "hour", "--group-by", "project"];
  const entered = await usageEtl(["backfill", ...range, "--detach", "--json"], environment);
  expect(entered.code).toBe(0);
  const [{ backfillId }] = JSON.parse(entered.stdout) as [{ backfillId: number }];
  // A split waits for the next time tasks are enqueued, and five splits lead to one hour.
  const state = `SELECT state FROM usage.backfill WHERE backfill_id = ${backfillId}`;
  await poll(async () => (await bench.value(state)) === "done", { deadlineMs: 150_000, everyMs: 100 });
  const { code, stdout } = await usageEtl(["backfill", "show", String(backfillId), "--json"], environment);
  return { code, said: JSON.parse(stdout) as Shown };
}

function workspacesOf(bench: ServiceBench): Promise<number> {
  return bench.value<number>("SELECT count(*) FROM usage.workspace").then(Number);
}

test("a window that the platform refuses (400): each workspace's slice of it fails, the rest is done", {
  timeout: LONG,
}, async () => {
  const bench = await setupService({ days: 30, workspaces: 2 });
  bench.standin.faults.script({
    fault: {
      kind: "status",
      status: 400,
      body: '{"detail":"no such bucket"}',
      content_type: "application/json",
    },
    times: 1_000,
    match: { path: "granular-usage", query: { start_time: FROM, group_by: "project" } },
  });
  await bench.serve();
  const { code, said } = await backfill(bench);
  const workspaces = await workspacesOf(bench);
  expect(code).toBe(3);
  expect(said).toMatchObject({ failed: workspaces, done: said.total - workspaces });
  expect(said.failedSlices).toHaveLength(workspaces);
  for (const slice of said.failedSlices) {
    expect(slice).toMatchObject({ groupBy: "project", from: FROM });
    expect(slice.code).not.toBe("");
    expect(slice.message).toContain("400");
  }
});

test("a window that is answered with 500 every time: eight requests each, then it fails, the rest is done", {
  timeout: LONG,
}, async () => {
  const bench = await setupService({ days: 30, workspaces: 2 });
  bench.standin.faults.script({
    // Without waiting: the pauses are the subject of test/unit/pipeline/retry.test.ts.
    fault: { kind: "status", status: 500, retry_after: 0 },
    times: 1_000,
    match: { path: "granular-usage", query: { start_time: FROM, group_by: "project" } },
  });
  await bench.serve();
  const { code, said } = await backfill(bench);
  const workspaces = await workspacesOf(bench);
  expect(code).toBe(3);
  expect(said).toMatchObject({ failed: workspaces, done: said.total - workspaces });
  for (const slice of said.failedSlices) {
    expect(slice).toMatchObject({ groupBy: "project", from: FROM, code: "server_error" });
    expect(slice.message).toContain("answered 500");
  }
  const sent = `SELECT count(*) FROM usage.fetch WHERE group_by = 'project' AND period_start = '${FROM}' AND status = 500`;
  expect(Number(await bench.value(sent))).toBe(8 * workspaces);
});

test("one record that fails its schema costs one bucket of one workspace", { timeout: LONG }, async () => {
  const bench = await setupService({ days: 30, workspaces: 2 });
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
  expect(said.failedSlices).toMatchObject([
    {
      groupBy: "project",
      from: instant(start),
      to: instant(start + 3_600_000),
      workspaceIds: [bad.workspaceId],
      code: "answer_invalid",
    },
  ]);
  expect(said.failedSlices[0]?.message).toContain("traces");
});

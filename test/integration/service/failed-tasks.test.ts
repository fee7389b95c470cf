import { expect, test } from "vitest";
import { enqueueJob } from "../../../jobs/enqueue.ts";
import { usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { daysAgo, type ServiceBench, setupService } from "../../support/service.ts";

/**
 * A backfill with tasks that cannot be loaded: the others are, and these are shown with their reason. What a refusal or a bad record
 * costs is in test/faults/refusals.test.ts.
 */

const FROM = `${daysAgo(20)}T00:00:00Z`;

/** Syncs are rare, since their tasks go before those of a backfill. */
const OPTIONS = { days: 30, workspaces: 2, environment: { USAGE_SYNC_EVERY: "PT1M" } };

interface Shown {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly failedTasks: object[];
}

async function backfill(bench: ServiceBench): Promise<{ code: number | null; said: Shown }> {
  const range = ["--from", daysAgo(20), "--to", daysAgo(15), "--stride", "hour", "--group-by", "project"];
  const backfillId = await bench.createBackfill(...range);
  const state = `SELECT state FROM usage.backfill WHERE backfill_id = ${backfillId}`;
  const queue = await bench.openQueue("control");
  await poll(
    async () => {
      await queue.add(enqueueJob.name, {}, enqueueJob.options);
      return (await bench.value(state)) === "done";
    },
    { deadlineMs: 150_000, everyMs: 500 },
  );
  const show = ["backfill", "show", String(backfillId), "--json"];
  const { code, stdout } = await usageEtl(show, bench.environment);
  return { code, said: (JSON.parse(stdout) as [Shown])[0] };
}

test("a window that is always responded with 500 fails after eight requests, and every other task is loaded", async () => {
  const fault = { kind: "status", status: 500, retry_after: 0 } as const;
  const bench = await setupService(OPTIONS);
  const match = { path: "granular-usage", query: { start_time: FROM, group_by: "project" } };
  bench.standin.faults.script({ fault, times: 1_000, match });
  await bench.serve();
  const { code, said } = await backfill(bench);
  const workspaces = await bench.count("SELECT count(*) FROM usage.workspace");
  expect(code).toBe(3);
  expect(said).toMatchObject({ failed: workspaces, done: said.total - workspaces });
  const message = expect.stringContaining("responded with 500");
  const failed = { groupBy: "project", from: FROM, code: "server_error", message };
  expect(said.failedTasks).toEqual(Array(workspaces).fill(expect.objectContaining(failed)));
  const sent = `SELECT count(*) FROM usage.fetch WHERE group_by = 'project' AND period_start = '${FROM}' AND status = 500`;
  expect(await bench.count(sent)).toBe(8 * workspaces);
});

import { expect, test } from "vitest";
import { scopesOf } from "../../src/core/store/catalog/scopes.ts";
import { createBackfill, steerBackfill } from "../../src/core/store/work/backfills.ts";
import { addSource, connect } from "../support/reporting.ts";
import { setupMigrated, windowOf } from "../support/store.ts";

const WORKSPACE = "00000000-0000-4000-8000-000000000001";

test("backfill_status counts the fetch tasks of each backfill, and usage_reader sees it", async () => {
  const { store, url } = await setupMigrated();
  const sourceId = await addSource(store, { slug: "default", workspaceIds: [WORKSPACE] });
  const scopeIds = await scopesOf(store.db, {
    sourceId,
    groupBy: "workspace",
    stride: "day",
    workspaceIds: [WORKSPACE],
  });
  const windows = [1, 2, 3, 4].map((day) => windowOf("day", `2026-03-0${day}`, `2026-03-0${day + 1}`));
  const wanted = {
    sourceId,
    meter: "traces",
    range: { start: Date.parse("2026-03-01"), end: Date.parse("2026-03-05") },
    stride: "day",
    groupings: ["workspace"],
    workspaceIds: [WORKSPACE],
    reprocess: "missing",
  } as const;
  const tasks = windows.map((window) => ({
    meter: "traces" as const,
    groupBy: "workspace" as const,
    window,
    members: [{ workspaceId: WORKSPACE, scopeId: scopeIds[0] as number }],
  }));
  const by = { name: "ada", role: "operator", via: "command" } as const;
  const first = await createBackfill(store, { ...wanted, tasks, by });
  const empty = await createBackfill(store, { ...wanted, meter: "longlived", tasks: [], by });

  const client = await connect(url);
  await client.query(`
    UPDATE usage.fetch_task SET state = 'done', finished_at = now() WHERE period_start < '2026-03-03Z';
    UPDATE usage.fetch_task SET state = 'failed', finished_at = now() WHERE period_start = '2026-03-03Z'`);
  await steerBackfill(store, { backfillId: first, action: "cancel", by });

  await client.query("SET ROLE usage_reader; SET TIME ZONE 'UTC'");
  const { rows } = await client.query(
    `SELECT source_id, backfill_id, state, stride, period_start::text, period_end::text, done::integer,
            failed::integer, total::integer, finished_at IS NOT NULL AS is_finished, meter
     FROM reporting_detail.backfill_status ORDER BY backfill_id`,
  );
  const same = {
    source_id: "default",
    stride: "day",
    period_start: "2026-03-01 00:00:00+00",
    period_end: "2026-03-05 00:00:00+00",
    is_finished: true,
    meter: "traces",
  };
  expect(rows).toEqual([
    { ...same, backfill_id: first, state: "cancelled", done: 2, failed: 1, total: 4 },
    { ...same, backfill_id: empty, meter: "longlived", state: "done", done: 0, failed: 0, total: 0 },
  ]);
});

import { expect, test } from "vitest";
import { monthNamed } from "../../../src/core/domain/months/month.ts";
import { describeProviderMonth } from "../../../src/core/domain/months/provider.ts";
import { otherTraces } from "../../../src/features/costs/other-traces.store.ts";
import { monthsToRead } from "../../../src/features/costs/provider-totals.store.ts";
import { FIRST_DAY, setupSource } from "./setup.ts";

test("a month of the billing provider is read again until it was compared to the end, and after a restatement", async () => {
  const { store, reader, sourceId } = await setupSource({ workspaceIds: ["w1"], dataStart: FIRST_DAY });
  const months = ["2026-01", "2026-02", "2026-03"].flatMap((name) => monthNamed(name) ?? []);
  const due = async () => (await monthsToRead(store.db, { sourceId, months })).map(({ name }) => name);
  const keep = (month: string, outcome: string, stored: number | null) =>
    reader.query(
      `INSERT INTO usage.provider_total (source_id, month_start, metric_id, workspace, meter, value, outcome, stored_traces, fetch_number, read_at)
       VALUES ($1, $2, 'm', $3, 'traces', 5, $3, $4, 1, '2026-04-10Z') ON CONFLICT DO NOTHING`,
      [sourceId, `${month}-01`, outcome, stored],
    );
  expect(await due()).toEqual(["2026-01", "2026-02", "2026-03"]);
  await keep("2026-02", "equal", 5);
  expect(await due()).toEqual(["2026-01", "2026-03"]);
  await keep("2026-01", "unknown_workspace", null);
  await keep("2026-03", "not_loaded", null);
  const range = { start: Date.parse("2026-01-01"), end: Date.parse("2026-02-01") };
  const { provider } = await otherTraces(store.db, { sourceId, monthStart: "2026-01-01", range });
  expect(describeProviderMonth(provider)).toBe(
    "compared with the billing provider on 2026-04-10: traces of 1 workspace not compared (the workspace is not loaded here, and the provider counts 5 traces there).",
  );
  expect(await due()).toEqual([]);
  expect(await monthsToRead(store.db, { sourceId: sourceId + 1, months })).toEqual(months);

  for (const [outcome, stored] of [
    ["differs", 4],
    ["not_final", null],
  ] as const) {
    await keep("2026-02", outcome, stored);
    expect(await due(), outcome).toEqual(["2026-02"]);
    await reader.query("DELETE FROM usage.provider_total WHERE outcome = $1", [outcome]);
    expect(await due()).toEqual([]);
  }

  await reader.query(
    `INSERT INTO usage.difference
       (scope_id, compared_with, kind, period_start, period_end, external_id, stored_traces, other_traces, state, fetch_number)
     SELECT scope_id, 'provider_total', 'provider_total', '2026-03-01Z', '2026-04-01Z', 'w1', 1, 2, 'platform_disagrees', 1
     FROM usage.trace_scope WHERE stride = 'day' AND group_by = 'workspace'`,
  );
  expect(await due()).toEqual(["2026-03"]);
  await reader.query("UPDATE usage.difference SET state = 'closed', closed_at = now()");
  expect(await due()).toEqual([]);

  const restate = (bucket: string, at: string, groupBy = "workspace") =>
    reader.query(
      `WITH s AS (
         INSERT INTO usage.series (scope_id, entity_id)
         SELECT scope_id, workspace_id FROM usage.trace_scope WHERE stride = 'day' AND group_by = $3
         ON CONFLICT (scope_id, entity_id, measure) DO UPDATE SET measure = excluded.measure RETURNING series_id
       )
       INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number, restated_at)
       SELECT series_id, $1, 1, 2, 1, $2 FROM s`,
      [bucket, at, groupBy],
    );
  await restate("2026-02-10Z", "2026-04-09Z");
  await restate("2026-02-10Z", "2026-04-11Z", "user");
  await restate("2026-04-01Z", "2026-04-11Z");
  expect(await due()).toEqual([]);
  await restate("2026-02-28Z", "2026-04-11Z");
  expect(await due()).toEqual(["2026-02"]);
});

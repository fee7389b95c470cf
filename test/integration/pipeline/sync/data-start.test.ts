import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { runInline } from "../../../../src/core/pipeline/extract/run-inline.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { moveDataStart } from "../../../../src/features/catalog/move-data-start.store.ts";
import { now } from "../../../support/clock.ts";
import { type Bench, setup } from "../../../support/source.ts";

const BY = { name: "ada", role: "operator", via: "command" } as const;

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const coveredBefore = ({ sql }: Bench, day: string) =>
  sql("SELECT FROM usage.coverage WHERE period_start < $1::date::timestamp AT TIME ZONE 'UTC'", [day]);
const storedStart = async ({ sql }: Bench) =>
  (await sql<{ data_start: string }>("SELECT data_start::text FROM usage.source"))[0]?.data_start;

const statuses = (bench: Bench, of = "") =>
  bench.sql<{ status: string; first: string }>(
    `SELECT status, count(*)::integer AS days, min(usage_date)::text AS first FROM reporting_detail.usage_coverage_daily
     WHERE stride = 'day' AND usage_date < $1 AND workspace_id LIKE $2 GROUP BY status ORDER BY status`,
    [dayOf(bench.today), `%${of}`],
  );

const idleAtFirst = async () => {
  const today = Math.floor(now() / DAY_MS) * DAY_MS;
  const bench = await setup({ days: 6, workspaces: [0], standin: { dataStart: dayOf(today - 3 * DAY_MS) } });
  return { bench, start: bench.dataStart, later: dayOf(bench.dataStart + 3 * DAY_MS) };
};

test("a data start that is configured later leaves no workspace missing that is added afterwards", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  await bench.open();
  const saysStart = ({ code }: Record<string, unknown>) => `${code}`.startsWith("data_start");
  expect(bench.logs.filter(saysStart)).toEqual([]);
  const [first = "", added = ""] = bench.standin.organisation.workspaces.map(({ id }) => id);
  const config = { dataStart: dayOf(bench.dataStart + 3 * DAY_MS), workspaceIds: [first, added] };
  const { source } = await bench.sync({ config });
  expect(source.dataStart).toBe(bench.dataStart);
  expect((await statuses(bench, added)).map(({ status }) => status)).not.toContain("missing");
  expect(bench.logs).toContainEqual(
    expect.objectContaining({ code: "data_start_later", stored: dayOf(bench.dataStart) }),
  );
  const range = { start: bench.dataStart, end: bench.dataStart + 3 * DAY_MS };
  const again = await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" }, { config });
  expect(again.planned).toBeGreaterThan(0);
});

test("a data start that is configured earlier moves at contact, and the days between are fetched", async () => {
  const bench = await setup({ workspaces: [0] });
  const config = { dataStart: dayOf(bench.dataStart + 2 * DAY_MS) };
  await bench.sync({ config });
  await bench.sql(
    "INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements) SELECT source_id, date_trunc('month', data_start - 1), date_trunc('month', data_start - 1) + interval '1 month', 0, 0 FROM usage.source",
  );
  await bench.open();
  expect(await storedStart(bench)).toBe(dayOf(bench.dataStart));
  expect(await statuses(bench)).toContainEqual({ status: "missing", days: 8, first: dayOf(bench.dataStart) });
  expect(bench.logs).toContainEqual(
    expect.objectContaining({
      code: "data_start_moved",
      closedMonths: [expect.stringMatching(/^\d{4}-\d{2}$/)],
      msg: expect.stringMatching(/moved from \S+ to \S+\. Closed months keep their totals/),
    }),
  );
  await bench.sync();
  expect((await statuses(bench)).map(({ status }) => status)).not.toContain("missing");
});

test("moved later by command, nothing before it is expected, stored or asked for", async () => {
  const { bench, later } = await idleAtFirst();
  await bench.sync();
  const { sourceId } = await bench.open();
  await bench.sql(
    `INSERT INTO usage.failure SELECT scope_id, $1, $1::timestamptz + interval '24 hours', 'failed', 'x', 'x', 1, 1, now(), now()
     FROM usage.trace_scope WHERE stride = 'day'`,
    [new Date(bench.dataStart).toISOString()],
  );
  await bench.sql(
    `INSERT INTO usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
     VALUES ($1, 'user', 'day', $2, $3, '{1}', '{a}')`,
    [sourceId, new Date(bench.dataStart).toISOString(), `${later}T00:00:00Z`],
  );
  const totals = () =>
    bench.sql(
      "SELECT month_start, dimension_id, traces, is_complete FROM reporting_detail.fct_usage_monthly WHERE group_by = 'project' ORDER BY 1, 2",
    );
  const before = await totals();
  await moveDataStart(bench.store, { sourceId, to: later, by: BY });

  expect(await storedStart(bench)).toBe(later);
  expect(await totals()).toEqual(before);
  expect((await statuses(bench)).filter(({ first }) => first < later)).toEqual([]);
  const left = await bench.sql(
    `SELECT (SELECT count(*) FROM usage.coverage WHERE period_start < $1::date::timestamp AT TIME ZONE 'UTC') AS coverage,
            (SELECT count(*) FROM usage.failure WHERE period_start < $1::date::timestamp AT TIME ZONE 'UTC') AS failures,
            (SELECT count(*) FROM usage.fetch_task) AS tasks,
            (SELECT count(*) FROM usage.dated_record WHERE bucket_start < $1::date) AS records`,
    [later],
  );
  expect(left).toEqual([{ coverage: 0, failures: 0, tasks: 0, records: 0 }]);
  const { source, planned } = await bench.sync({ config: { dataStart: later } });
  expect([source.dataStart, planned]).toEqual([Date.parse(later), expect.any(Number)]);
  expect(await storedStart(bench)).toBe(later);
  expect(await coveredBefore(bench, later)).toEqual([]);
});

test("a window that was planned before the data start moved later is not loaded", async () => {
  const { bench, start, later } = await idleAtFirst();
  await bench.sync();
  const source = await bench.open();
  await moveDataStart(bench.store, { sourceId: source.sourceId, to: later, by: BY });
  const range = { start, end: start + 3 * DAY_MS };
  const tasks = await planSource(source, { wanted: [{ stride: "day", range }], reprocess: "all" });
  const { counts } = await runInline(source, tasks);
  expect(counts.map(({ requests, discarded }) => [requests, discarded])).toEqual([
    [1, 1],
    [1, 1],
    [1, 1],
    [1, 1],
  ]);
  expect(await coveredBefore(bench, later)).toEqual([]);
  await bench.open({ config: { dataStart: later } });
  expect(await storedStart(bench)).toBe(later);
});

test("a data start does not move past traces, a closed month or a backfill under way", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const { sourceId } = await bench.open();
  const [start, to] = [dayOf(bench.dataStart), dayOf(bench.dataStart + 2 * DAY_MS)];
  await expect(moveDataStart(bench.store, { sourceId, to, by: BY })).rejects.toMatchObject({
    code: "data_start_hides_usage",
    next: expect.stringContaining(start),
  });
  await bench.sql(
    `WITH b AS (
       INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess)
       VALUES ($1, 'day', $2, $3, '{user}', '{a}', 'all') RETURNING backfill_id
     )
     INSERT INTO usage.fetch_task (source_id, backfill_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
     SELECT $1, backfill_id, 'user', 'day', $2, $3, '{1}', '{a}' FROM b`,
    [sourceId, `${start}T00:00:00Z`, `${to}T00:00:00Z`],
  );
  await expect(moveDataStart(bench.store, { sourceId, to, by: BY })).rejects.toMatchObject({
    code: "data_start_backfill",
  });
  await bench.sql(
    "INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements) VALUES ($1, date_trunc('month', $2::date), date_trunc('month', $2::date) + interval '1 month', 0, 0)",
    [sourceId, start],
  );
  await expect(moveDataStart(bench.store, { sourceId, to, by: BY })).rejects.toMatchObject({
    code: "data_start_closed",
  });
  expect(await storedStart(bench)).toBe(start);
});

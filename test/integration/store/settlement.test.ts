import { beforeEach, describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import type { Store } from "../../../src/core/store/db/database.ts";
import { pruneHistory } from "../../../src/core/store/retention/prune.ts";
import { now } from "../../support/clock.ts";
import { loadRows, type ResponseRow, windowOf } from "../../support/store.ts";
import { setupSource } from "./setup.ts";

const WORKSPACE = "00000000-0000-4000-8000-000000000001";
const PROJECT = "00000000-0000-4000-8000-00000000000b";

let store: Store;
let sourceId: number;

beforeEach(async () => {
  ({ store, sourceId } = await setupSource({
    workspaceIds: [WORKSPACE],
    dataStart: Date.parse("2026-03-01"),
  }));
});

const rows = (text: string, values: unknown[] = []) =>
  store.transaction(async ({ client }) => (await client.query(text, values)).rows);

const load = (from: string, to: string, given: readonly ResponseRow[], settleAfterMs = 0) =>
  loadRows(store, {
    sourceId,
    groupBy: "project",
    workspaceId: WORKSPACE,
    window: windowOf("day", from, to),
    rows: given,
    settleAfterMs,
  });

const iso = (instant: number) => new Date(instant).toISOString();

describe("as of", () => {
  const call =
    "SELECT usage_date::text, dimension_id AS project_id, traces FROM reporting_detail.usage_daily_as_of($1, 'project')";

  /** As if everything so far had happened two hours ago. */
  const letTwoHoursPass = () =>
    rows(`
      WITH a AS (UPDATE usage.became_final SET final_at = final_at - interval '2 hours')
      UPDATE usage.restatement SET restated_at = restated_at - interval '2 hours'`);

  test("a reader gets what was stored, and can read nothing else", async () => {
    await load("2026-03-01", "2026-03-02", [["2026-03-01", PROJECT, 5]]);
    await letTwoHoursPass();
    await load("2026-03-01", "2026-03-02", [["2026-03-01", PROJECT, 7]]);
    const asReader = (text: string, at: number) =>
      store.transaction(async ({ client }) => {
        await client.query("SET LOCAL ROLE usage_reader");
        return (await client.query(text, [iso(at)])).rows;
      });
    const hourAgo = now() - HOUR_MS;
    expect(await asReader(call, hourAgo)).toEqual([
      { usage_date: "2026-03-01", project_id: PROJECT, traces: 5 },
    ]);
    expect(await asReader(call, hourAgo - 2 * HOUR_MS)).toEqual([]);
    await expect(asReader(call.replace("project')", "team')"), hourAgo)).rejects.toThrow(
      "There is no dimension team.",
    );
    await expect(asReader("SELECT * FROM usage.daily_as_of($1, 'project')", hourAgo)).rejects.toThrow(
      /permission denied/,
    );
  });

  test("days without usage are zero by workspace", async () => {
    await loadRows(store, {
      sourceId,
      groupBy: "workspace",
      workspaceId: WORKSPACE,
      window: windowOf("day", "2026-03-01", "2026-03-03"),
      rows: [["2026-03-02", WORKSPACE, 9]],
    });
    await letTwoHoursPass();
    expect(
      await rows(
        "SELECT usage_date::text, traces FROM reporting_detail.usage_daily_as_of($1, 'workspace') ORDER BY 1",
        [iso(now() - HOUR_MS)],
      ),
    ).toEqual([
      { usage_date: "2026-03-01", traces: 0 },
      { usage_date: "2026-03-02", traces: 9 },
    ]);
  });

  test.each([
    ["a minute ahead", () => iso(now() + 60_000), /running loads may still change/],
    ["null", () => null, /is null/],
  ])("%s is refused", async (_, at, message) => {
    await expect(rows(call, [at()])).rejects.toThrow(message);
  });

  test("an instant of pruned history is refused, and kept history answers as before", async () => {
    await load("2026-03-01", "2026-03-02", [["2026-03-01", PROJECT, 5]]);
    await load("2026-03-01", "2026-03-02", [["2026-03-01", PROJECT, 6]]);
    await load("2026-03-02", "2026-03-03", []);
    // As if that was 50 days ago, the source older still; the next load is of today.
    await rows(`
      WITH a AS (UPDATE usage.became_final SET final_at = final_at - interval '50 days'),
           b AS (UPDATE usage.restatement SET restated_at = restated_at - interval '50 days')
      UPDATE usage.source SET created_at = created_at - interval '60 days'`);
    await load("2026-03-01", "2026-03-02", [["2026-03-01", PROJECT, 8]]);
    const tenDaysAgo = iso(now() - 10 * DAY_MS);
    const before = await rows(call, [tenDaysAgo]);
    expect(before).toEqual([{ usage_date: "2026-03-01", project_id: PROJECT, traces: 6 }]);

    const [ranges] = await rows("SELECT count(*)::integer AS ranges FROM usage.became_final");
    expect(await pruneHistory(store, { sourceId, keepDays: 30 })).toBe(1);
    expect(await rows("SELECT count(*)::integer AS ranges FROM usage.became_final")).toEqual([
      { ranges: ranges.ranges - 1 },
    ]);
    expect(await rows(call, [tenDaysAgo])).toEqual(before);
    await expect(rows(call, [iso(now() - 31 * DAY_MS)])).rejects.toThrow(/the history begins/);
  });
});

describe("late changes", () => {
  const late = () =>
    rows(
      "SELECT stride, was_final, age_hours, changes, traces_moved FROM usage.late_change ORDER BY was_final, age_hours",
    );
  /** Days that ended so many hours ago, in the response at hand. */
  const today = Math.floor(now() / DAY_MS) * DAY_MS;
  const day = (ago: number) => iso(today - ago * DAY_MS).slice(0, 10);

  test("are counted by age, separately for final and provisional counts", async () => {
    await load(
      day(40),
      day(-1),
      [
        [day(40), PROJECT, 5],
        [day(3), PROJECT, 10],
      ],
      20 * DAY_MS,
    );
    await load(
      day(40),
      day(-1),
      [
        [day(40), PROJECT, 7],
        [day(3), PROJECT, 4],
        [day(2), PROJECT, 1],
      ],
      20 * DAY_MS,
    );
    const hoursToday = Math.floor((now() - today) / HOUR_MS);
    const classOf = (hours: number) =>
      [1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 144, 168].find((end) => hours < end);
    const found = await late();
    expect(found.filter((one) => one.was_final)).toEqual([
      { stride: "day", was_final: true, age_hours: 1488, changes: 1, traces_moved: 2 },
    ]);
    const provisional = found.filter((one) => !one.was_final);
    const expected = [
      { age_hours: classOf(hoursToday + 24), traces_moved: 1 },
      { age_hours: classOf(hoursToday + 48), traces_moved: 6 },
    ];
    expect(provisional).toMatchObject(expected);
  });

  test("do not include a bucket that grew because it was not over yet", async () => {
    await load(day(0), day(-1), [[day(0), PROJECT, 5]], DAY_MS);
    await load(day(0), day(-1), [[day(0), PROJECT, 7]], DAY_MS);
    expect(await late()).toEqual([]);
  });
});

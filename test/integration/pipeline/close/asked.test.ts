import { beforeEach, describe, expect, test } from "vitest";
import { daysWithin, monthAt, monthBefore } from "../../../../src/core/domain/months/month.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { sourcesWithWorkspaces } from "../../../../src/core/store/activity/overview.ts";
import { type CloseOrder, closeSources } from "../../../../src/features/close/close.ts";
import { lookAtMonth } from "../../../../src/features/close/close-preview.ts";
import { type Bench, setup } from "../../../support/source.ts";

const by = { name: null, role: "operator", via: "command" } as const;
const iso = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const refusal = (requested: Promise<unknown>): Promise<string> =>
  requested.then(
    () => "none",
    ({ code }) => code,
  );

let bench: Bench;

beforeEach(async () => {
  bench = await setup({ days: 100, workspaces: [0, 1] });
  await bench.open();
});

const addSource = (slug: string, dataStart: string, workspaceIds = bench.workspaceIds) =>
  bench.sql(
    `WITH s AS (
       INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest, workspace_ids)
       VALUES ($1, 'http://localhost/' || $1, $2, 1, '', $3) RETURNING *
     ), e AS (
       INSERT INTO usage.entity (source_id, dimension, external_id)
       SELECT source_id, 'workspace', unnest(workspace_ids) FROM s RETURNING entity_id
     )
     INSERT INTO usage.workspace (entity_id) SELECT entity_id FROM e`,
    [slug, dataStart, workspaceIds],
  );

describe("a month", () => {
  const current = () => monthAt(bench.today);
  const order = (month: string, more: Partial<CloseOrder> = {}) =>
    closeSources(bench.store, { period: month, slugs: [], settleAfterMs: 3 * DAY_MS, by, ...more });

  test("is a year and a month, and over from the first instant of the next one on, and one that data lies in", async () => {
    for (const text of [
      "2026",
      "2026-13",
      "2026-3",
      "2026-3-20",
      "2026-13-01",
      "2026-02-30",
      "x2026-03-20",
      "2026-03-201",
      "",
    ])
      expect(await refusal(order(text)), text).toBe("month_invalid");
    expect(await refusal(order(current().name))).toBe("period_not_over");
    const [source] = await sourcesWithWorkspaces(bench.store.db);
    if (source === undefined) throw new Error("no source");
    const month = monthBefore(current());
    const look = { source, month: month.name };
    const at = (now: number) => lookAtMonth(bench.store.db, { ...look, now });
    expect(await refusal(at(Date.parse(month.end) - 1))).toBe("period_not_over");
    expect(await at(Date.parse(month.end))).toMatchObject({ month, closed: undefined });
    await bench.sql("UPDATE usage.source SET data_start = $1", [current().start]);
    expect(await refusal(order(month.name))).toBe("period_before_data");
    const late = { ...source, dataStart: current().start };
    const before = lookAtMonth(bench.store.db, { ...look, source: late, now: bench.now });
    expect(await refusal(before)).toBe("period_before_data");
  });

  test("has the days from the data start on; deployment usage may have begun before", () => {
    const month = monthBefore(current());
    const [start, end] = [Date.parse(month.start), Date.parse(month.end)];
    const days = (from: number) => daysWithin(month, iso(from));
    expect(days(start - DAY_MS)).toEqual({ start, end, othersStart: start });
    expect(days(start)).toEqual({ start, end, othersStart: start });
    expect(days(end - DAY_MS)).toEqual({ start: end - DAY_MS, end, othersStart: start });
  });

  test("closes for the sources that are named, or for those whose data begins before its end", async () => {
    const month = monthBefore(current());
    await addSource("late", month.end);
    await addSource("early", iso(Date.parse(month.end) - DAY_MS));
    const closed = async (slugs: string[]) =>
      (await order(month.name, { slugs })).map(({ source }) => source).sort();
    expect(await closed([])).toEqual(["default", "early"]);
    expect(await closed(["early"])).toEqual(["early"]);
    expect(await closed(["early", "late", "unknown"])).toEqual(["early"]);
    expect(await refusal(closed(["late"]))).toBe("period_before_data");
    expect(await refusal(closed(["other", "unknown"]))).toBe("source_unloaded");
  });

  test("lists all open days, by day, dimension and workspace", async () => {
    const month = monthBefore(current());
    const [all] = await order(month.name);
    if (all?.result.state !== "open") throw new Error("not open");
    const keys = all.result.open.map((one) => `${iso(one.day)} ${one.groupBy} ${one.workspaceId}`);
    expect(keys).toEqual(keys.toSorted());
    expect(keys).toHaveLength(2 * 4 * ((Date.parse(month.end) - Date.parse(month.start)) / DAY_MS));
  });
});

describe("a billing period", () => {
  const close = (day: string, slugs: string[] = []) =>
    closeSources(bench.store, { period: day, slugs, settleAfterMs: 3 * DAY_MS, by });
  const know = (...ends: string[]) =>
    bench.sql(
      `INSERT INTO usage.billing_period (source_id, ends_at, plan_tier, read_at)
       SELECT s.source_id, e, 'plus', now() FROM usage.source s, unnest($1::timestamptz[]) e WHERE s.slug = 'default'`,
      [ends],
    );

  test("is named by one of its days, and was read", async () => {
    expect(await refusal(close(iso(bench.today), ["other"]))).toBe("source_unloaded");
    expect(await refusal(close(iso(bench.today - 3 * DAY_MS)))).toBe("period_unknown");
    // Not from the first of a month on: the period before would look like a calendar month.
    const shift = iso(bench.today - 60 * DAY_MS).endsWith("-01") ? 1 : 0;
    const daysAgo = (days: number) => iso(bench.today - (days + shift) * DAY_MS);
    const [start, middle, end] = [daysAgo(60), daysAgo(33), daysAgo(6)];
    await know(start, middle, end);
    for (const day of [daysAgo(3), end, daysAgo(99)])
      expect(await refusal(close(day)), day).toBe("period_unknown");
    expect(await refusal(close(iso(Date.parse(start) - DAY_MS)))).toBe("period_start_unknown");
    for (const [on, period] of [
      [start, { name: start, start, end: middle }],
      [iso(Date.parse(middle) - DAY_MS), { name: start, start, end: middle }],
      [middle, { name: middle, start: middle, end }],
    ] as const) {
      expect(await close(on), on).toMatchObject([{ source: "default", period, result: { state: "open" } }]);
    }
  });
});

import { beforeEach, describe, expect, test } from "vitest";
import type { UsageRequest } from "../../../../src/core/domain/planning/request.ts";
import { DAY_MS, type Stride } from "../../../../src/core/domain/time/stride.ts";
import type { OpenSource } from "../../../../src/core/pipeline/source/source.ts";
import { type PlanRequest, planRetries, planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { planSync } from "../../../../src/core/pipeline/sync/sync.ts";
import { type Bench, setup } from "../../../support/source.ts";

const [ONE, TWO] = [0, 1];
const AHEAD = "1 hour";
const PAST = "-1 hour";

let bench: Bench;
let source: OpenSource;

beforeEach(async () => {
  bench = await setup({ days: 100, workspaces: [ONE, TWO] });
  source = await bench.open();
  await planSource(source, { wanted: [{ stride: "week", range: days(0, 100) }], reprocess: "missing" });
});

const at = (day: number) => bench.dataStart + day * DAY_MS;
const days = (from: number, to: number) => ({ start: at(from), end: at(to) });
const scopeOf = async (workspace: number, stride: Stride) => {
  const [row] = await bench.sql<{ scope_id: number }>(
    `SELECT scope_id FROM usage.trace_scope JOIN usage.entity ON entity_id = workspace_id
     WHERE group_by = 'project' AND stride = $1 AND external_id = $2`,
    [stride, bench.workspaceIds[workspace]],
  );
  return row?.scope_id ?? 0;
};
const iso = ({ start, end }: { start: number; end: number }) =>
  [start, end].map((ms) => new Date(ms).toISOString());

const cover = async (workspace: number, range: ReturnType<typeof days>, final: boolean) =>
  bench.sql("INSERT INTO usage.coverage VALUES ($1, $2, $3, $4, 1, now(), '{}')", [
    await scopeOf(workspace, "day"),
    ...iso(range),
    final,
  ]);
const fail = async (
  workspace: number,
  range: ReturnType<typeof days>,
  retryIn: string,
  stride: Stride = "day",
) =>
  bench.sql(
    "INSERT INTO usage.failure VALUES ($1, $2, $3, 'failed', 'x', 'x', 1, 1, now() - interval '2 hours', now() + $4::interval)",
    [await scopeOf(workspace, stride), ...iso(range), retryIn],
  );

const shown = (tasks: readonly UsageRequest[]) =>
  tasks
    .map(({ groupBy, window, members }) => {
      expect(groupBy).toBe("project");
      const [from, to] = [window.start, window.end].map((ms) => (ms - bench.dataStart) / DAY_MS);
      const workspaces = members.map((one) => bench.workspaceIds.indexOf(one.workspaceId));
      return `${workspaces} ${window.stride} ${from} ${to}`;
    })
    .sort();
const plan = async (request: Partial<PlanRequest> = {}) =>
  shown(
    await planSource(source, {
      wanted: [{ stride: "day", range: days(10, 20) }],
      reprocess: "missing",
      groupings: ["project"],
      ...request,
    }),
  );

describe("what is wanted", () => {
  test("may be in several strides, each by its own time", async () => {
    await cover(ONE, days(10, 20), true);
    const workspaceIds = bench.workspaceIds.slice(0, 1);
    const wanted = [
      { stride: "hour" as const, range: days(15, 15.5) },
      { stride: "day" as const, range: days(10, 21) },
    ];
    expect(await plan({ wanted, workspaceIds })).toEqual(["0 day 20 21", "0 hour 15 15.5"]);
  });
});

describe("due failures outside of what is wanted", () => {
  const retries = async (given: Parameters<typeof planRetries>[1] = { wanted: [] }, from = source) =>
    shown(await planRetries(from, given));

  test("are asked about again, each in its stride, and others are not", async () => {
    await fail(ONE, days(30, 31), PAST);
    await fail(ONE, days(40, 41), AHEAD);
    await fail(TWO, days(50, 50 + 2 / 24), PAST, "hour");
    expect(await retries()).toEqual([`0 day 30 31`, `1 hour 50 ${50 + 2 / 24}`]);
    expect(await retries(undefined, { ...source, capabilities: new Set(["no_hour"]) })).toEqual([
      "0 day 30 31",
    ]);
    const ofTwo = source.workspaceIds.filter((id) => id === bench.workspaceIds[TWO]);
    expect(await retries(undefined, { ...source, workspaceIds: ofTwo })).toEqual([
      `1 hour 50 ${50 + 2 / 24}`,
    ]);
  });

  test("leave out what is wanted in the same stride, and what is in flight", async () => {
    await fail(ONE, days(30, 34), PAST);
    const wanted = [
      { stride: "day" as const, range: days(32, 40) },
      { stride: "hour" as const, range: days(30, 31) },
    ];
    expect(await retries({ wanted })).toEqual(["0 day 30 32"]);
    const inFlight = new Map([[await scopeOf(ONE, "day"), [days(30, 31)]]]);
    expect(await retries({ wanted, inFlight })).toEqual(["0 day 31 32"]);
  });

  test("that are too short for their tier reach back over loaded time, up to the first week since the data start", async () => {
    const week = 7 * DAY_MS;
    const first = Math.ceil(bench.dataStart / week) * week;
    const weeks = (from: number, to: number) => ({ start: first + from * week, end: first + to * week });
    await fail(ONE, weeks(8, 9), PAST, "week");
    const [task, ...others] = await planRetries(source, { wanted: [] });
    expect([task?.window, others]).toEqual([{ stride: "week", ...weeks(4, 9) }, []]);

    await bench.sql("DELETE FROM usage.failure");
    // Its five weeks begin with the first whole week since the data start.
    await fail(ONE, weeks(4, 5), PAST, "week");
    const early = await planRetries(source, { wanted: [] });
    expect(early.map((one) => one.window)).toEqual([{ stride: "week", ...weeks(0, 5) }]);
  });
});

test("a sync enters a due failure outside of what it keeps, once, and none that is not due", async () => {
  await fail(TWO, days(50, 50 + 2 / 24), PAST, "hour");
  await fail(TWO, days(60, 60 + 2 / 24), AHEAD, "hour");
  await planSync(source);
  expect(await planSync(source)).toMatchObject({ created: 0 });
  const created = await bench.sql<{ from: number; until: number }>(
    `SELECT extract(epoch FROM period_start) * 1000 AS "from", extract(epoch FROM period_end) * 1000 AS until
     FROM usage.fetch_task WHERE stride = 'hour' AND period_start < $1`,
    [iso(days(90, 90))[0]],
  );
  expect(created.map(({ from, until }) => ({ start: Number(from), end: Number(until) }))).toEqual([
    days(50, 50 + 2 / 24),
  ]);
});

test("the first plan of a source makes the scopes of days and hours, which views show beside each other", async () => {
  await bench.sql("DELETE FROM usage.trace_scope");
  await planSource(source, { wanted: [{ stride: "day", range: days(0, 1) }], reprocess: "missing" });
  const scopes = await bench.sql<{ stride: string; n: number }>(
    "SELECT stride, count(*)::integer AS n FROM usage.trace_scope GROUP BY 1 ORDER BY 1",
  );
  expect(scopes).toEqual([
    { stride: "day", n: 8 },
    { stride: "hour", n: 8 },
  ]);
});

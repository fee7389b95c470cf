import { describe, expect, test } from "vitest";
import type { GroupBy } from "../../src/domain/usage/record.ts";
import { client, setUpEachSource, sourceId, store } from "../support/each-source.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { type AnswerRow, loadRows, windowOf } from "../support/store.ts";

// March 2026, the first month of the source: its 10th day is loaded by hours alone, all others as days.

const [WORKSPACE] = WORKSPACES;
const [FIRST, BY_HOURS, NEXT, AFTER] = ["2026-03-01", "2026-03-10", "2026-03-11", "2026-04-01"] as const;
const NEVER_FINAL_MS = 100_000 * 86_400_000;

setUpEachSource();

/** `ids` each have a trace on the first and the last day of March, 10 at two hours of the 10th, and 100 on 1 April. */
async function loadMonth(groupBy: GroupBy, ids: readonly string[], hours: { settleAfterMs?: number } = {}) {
  const load = (
    stride: "day" | "hour",
    from: string,
    to: string,
    buckets: readonly string[],
    traces: number,
  ) =>
    loadRows(store, {
      sourceId,
      workspaceId: WORKSPACE,
      groupBy,
      window: windowOf(stride, from, to),
      rows: buckets.flatMap((bucket) => ids.map((id): AnswerRow => [bucket, id, traces])),
      ...(stride === "hour" ? hours : {}),
    });
  await load("day", FIRST, BY_HOURS, [FIRST], 1);
  await load("day", NEXT, AFTER, ["2026-03-31"], 1);
  await load("day", AFTER, "2026-04-02", [AFTER], 100);
  await load("hour", `${BY_HOURS}T00:00Z`, `${BY_HOURS}T12:00Z`, [`${BY_HOURS}T00:00Z`], 10);
  await load("hour", `${BY_HOURS}T12:00Z`, `${NEXT}T00:00Z`, [`${BY_HOURS}T23:00Z`], 10);
}

async function march(groupBy: GroupBy, id: string) {
  const { rows } = await client.query(`
    SELECT ${id} AS id, traces, days_expected, days_loaded, is_complete, is_final
    FROM reporting_detail.fct_usage_${groupBy}_monthly
    WHERE workspace_id = '${WORKSPACE}' AND month_start = '${FIRST}' ORDER BY 1`);
  return rows;
}

const WHOLE = { days_expected: "31", days_loaded: "31", is_complete: "t", is_final: "t" };

describe("a complete month with a day that is made of hours", () => {
  test("is the sum of its days and of those hours, by workspace and by id", async () => {
    await loadMonth("workspace", [WORKSPACE]);
    await loadMonth("project", ["a", "b"]);
    expect(await march("workspace", "workspace_id")).toEqual([{ id: WORKSPACE, traces: "22", ...WHOLE }]);
    expect(await march("project", "project_id")).toEqual([
      { id: "a", traces: "22", ...WHOLE },
      { id: "b", traces: "22", ...WHOLE },
    ]);
  });

  test("is not final while those hours are not", async () => {
    await loadMonth("workspace", [WORKSPACE], { settleAfterMs: NEVER_FINAL_MS });
    expect(await march("workspace", "workspace_id")).toEqual([
      { id: WORKSPACE, traces: "22", ...WHOLE, is_final: "f" },
    ]);
  });

  test("counts the day itself once it is loaded, and its hours no more", async () => {
    await loadMonth("project", ["a"]);
    await loadRows(store, {
      sourceId,
      workspaceId: WORKSPACE,
      groupBy: "project",
      window: windowOf("day", BY_HOURS, NEXT),
      rows: [[BY_HOURS, "a", 30]],
    });
    expect(await march("project", "project_id")).toEqual([{ id: "a", traces: "32", ...WHOLE }]);
  });
});

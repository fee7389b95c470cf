import { describe, expect, test } from "vitest";
import type { GroupBy } from "../../src/domain/usage/record.ts";
import { client, setUpEachSource, sourceId, store } from "../support/each-source.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { type AnswerRow, loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE] = WORKSPACES;
const [DAY, NEXT] = ["2026-03-01", "2026-03-02"] as const;
/** Longer ago than any day of this test. */
const NEVER_FINAL_MS = 100_000 * 86_400_000;

setUpEachSource();

const load = (groupBy: GroupBy, rows: readonly AnswerRow[], settleAfterMs = 0) =>
  loadRows(store, {
    sourceId,
    workspaceId: WORKSPACE,
    groupBy,
    window: windowOf("day", DAY, NEXT),
    rows,
    settleAfterMs,
  });

async function dayByProject() {
  const { rows } = await client.query(`
    SELECT workspace_traces, attributed_traces, unattributed_traces, is_final
    FROM reporting_detail.usage_unattributed_daily
    WHERE workspace_id = '${WORKSPACE}' AND usage_date = '${DAY}' AND group_by = 'project'`);
  return rows;
}

test("traces of records without an id are unattributed, and so are those that no record names", async () => {
  await load("workspace", [[DAY, WORKSPACE, 100]]);
  await load("project", [
    [DAY, "a", 40],
    [DAY, "(none)", 5],
    [DAY, "", 30],
  ]);
  expect(await dayByProject()).toEqual([
    { workspace_traces: "100", attributed_traces: "45", unattributed_traces: "55", is_final: "t" },
  ]);
});

test("a day on which the platform names nobody has 0 attributed traces", async () => {
  await load("workspace", [[DAY, WORKSPACE, 7]]);
  await load("project", [[DAY, "", 7]]);
  expect(await dayByProject()).toEqual([
    { workspace_traces: "7", attributed_traces: "0", unattributed_traces: "7", is_final: "t" },
  ]);
});

test("hours that make up a day are attributed alike", async () => {
  await load("workspace", [[DAY, WORKSPACE, 9]]);
  // Twice 12 hours: no window has 24.
  for (const [from, to] of [
    [`${DAY}T00:00Z`, `${DAY}T12:00Z`],
    [`${DAY}T12:00Z`, `${NEXT}T00:00Z`],
  ] as const) {
    const rows: AnswerRow[] = [
      [from, "a", 1],
      [from, "", 3],
    ];
    await loadRows(store, {
      sourceId,
      workspaceId: WORKSPACE,
      groupBy: "project",
      window: windowOf("hour", from, to),
      rows,
    });
  }
  expect(await dayByProject()).toEqual([
    { workspace_traces: "9", attributed_traces: "2", unattributed_traces: "7", is_final: "t" },
  ]);
});

describe("unattributed traces are null", () => {
  test.each([
    ["workspace", NEVER_FINAL_MS, 0],
    ["project", 0, NEVER_FINAL_MS],
  ] as const)("while the traces by %s are not final", async (_, byWorkspace, byProject) => {
    await load("workspace", [[DAY, WORKSPACE, 100]], byWorkspace);
    await load("project", [[DAY, "a", 40]], byProject);
    expect(await dayByProject()).toEqual([
      { workspace_traces: "100", attributed_traces: "40", unattributed_traces: null, is_final: "f" },
    ]);
  });

  test("while a dimension is not loaded", async () => {
    await load("workspace", [[DAY, WORKSPACE, 100]]);
    expect(await dayByProject()).toEqual([
      { workspace_traces: "100", attributed_traces: null, unattributed_traces: null, is_final: "f" },
    ]);
  });
});

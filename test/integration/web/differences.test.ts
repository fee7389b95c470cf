import { expect, test } from "vitest";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { type PagesBench, setupPages, setupViewer } from "../../support/pages.ts";
import { senderOn, setup } from "../../support/source.ts";

/** A workspace of whose first day the export has seven traces more than are stored. */
async function setupDifference() {
  const bench = await setup({ days: 6, workspaces: [1] });
  const [workspace = ""] = bench.workspaceIds;
  const day = bench.dataStart;
  const range = { start: day, end: day + 2 * DAY_MS };
  const load = () => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await load();
  const sender = senderOn(bench.standin, 1, day);
  bench.standin.ledger.change(sender, 7);
  await bench.reconcile({ range });
  const [{ stored = 0 } = {}] = await bench.sql<{ stored: number }>(
    "SELECT stored_amount::bigint AS stored FROM reporting_detail.usage_reconciliation WHERE group_by = 'workspace'",
  );
  const environment = { USAGE_WORKSPACE_IDS: workspace };
  const restate = async () => {
    await load();
    await bench.reconcile({ range });
  };
  return {
    ...bench,
    environment,
    pages: await setupPages(bench, { environment }),
    workspace,
    sender,
    stored,
    restate,
  };
}

const HEADS = ["Counted by", "Stored", "The other number"] as const;

/** What is stored and the other number of each line, without the titles of events. */
async function linesOf(pages: PagesBench, path: string): Promise<string[]> {
  const page = await pages.read(path);
  const rows = page.hasTable("Differences") ? page.table("Differences") : [];
  return rows
    .filter((row) => row.State !== undefined)
    .map((row) => HEADS.map((head) => row[head] ?? "").join(" | "));
}

const shown = (number: number) => number.toLocaleString("en-US");

test("a difference from the export has a line for each dimension, with both numbers and a link to its cell", async () => {
  const { pages, stored, workspace, dataStart } = await setupDifference();
  const lines = await linesOf(pages, "/differences?source=default");
  expect(lines).toHaveLength(4);
  expect(lines.find((line) => line.startsWith("Workspace by day"))).toMatch(
    new RegExp(` \\| ${shown(stored)} \\| ${shown(stored + 7)} export$`),
  );
  const { link } = await pages.read("/differences?source=default");
  expect(link("Workspace by day")).toBe(
    `/cell?source=default&workspace=${workspace}&group_by=workspace&stride=day&from=${dayOf(dataStart)}&to=${dayOf(dataStart + DAY_MS)}`,
  );
});

test("an address of a user is for operators only", async () => {
  const bench = await setupDifference();
  const email = bench.sender.user?.email ?? "";
  expect(email).toContain("@");
  expect((await bench.pages.get("/differences")).text).toContain(email);
  const viewer = await setupViewer(bench, { environment: bench.environment });
  const { text } = await viewer.get("/differences");
  expect(text).toContain(`user ${bench.sender.user?.id}`);
  expect(text).not.toContain(email);
});

test("a restatement is listed in place of the difference that it ended, and marked in the chart of its usage", async () => {
  const { pages, stored, restate, dataStart, today } = await setupDifference();
  await restate();
  expect(await linesOf(pages, "/differences?group_by=workspace")).toEqual([
    expect.stringContaining(`| ${shown(stored + 7)} | ${shown(stored)} before`),
  ]);
  expect(await linesOf(pages, "/differences?group_by=workspace&state=all")).toHaveLength(2);
  const from = dayOf(dataStart);
  for (const [per, at] of [
    ["day", from],
    ["month", `${from.slice(0, 7)}-01`],
  ]) {
    const { bars } = await pages.read(`/usage?by=project&per=${per}&from=${from}&to=${dayOf(today)}`);
    const marked = bars.filter((bar) => bar.includes("changed when it was final"));
    expect(marked.map((bar) => bar.slice(0, 10))).toEqual([at]);
  }
});

test("many lines of one instant come page by page, each once, together with a total", async () => {
  const { pages, sql, dataStart, restate } = await setupDifference();
  await restate();
  await sql(
    `INSERT INTO usage.difference
       (scope_id, compared_with, external_id, period_start, period_end, kind, stored_traces, other_traces, state, fetch_number)
     SELECT scope_id, 'export', 'planted ' || n, $1, $1::timestamptz + interval '1 day', 'traces_differ', n, n + 1, 'open', 1
     FROM usage.trace_scope, generate_series(1, 120) n WHERE stride = 'day' AND group_by = 'project'`,
    [new Date(dataStart).toISOString()],
  );
  await sql(
    `INSERT INTO usage.difference
       (scope_id, compared_with, kind, period_start, period_end, external_id, stored_traces, other_traces, state, fetch_number, found_at)
     SELECT scope_id, 'stride_total', 'stride_total', $1, $1::timestamptz + interval '7 days', 'planted total', 1, 2, 'platform_disagrees', 1, d.found_at
     FROM usage.trace_scope, (SELECT max(found_at) AS found_at FROM usage.difference) d
     WHERE stride = 'day' AND group_by = 'project'`,
    [new Date(dataStart).toISOString()],
  );
  const all: string[] = [];
  for (let next: string | undefined = "/differences?source=default"; next !== undefined; ) {
    all.push(...(await linesOf(pages, next)));
    [next] = (await pages.read(next)).links("Older differences");
  }
  const planted = all.flatMap((line) => /planted (\d+)/.exec(line)?.[1] ?? []);
  expect([planted.length, new Set(planted).size, all.length]).toEqual([120, 120, 120 + 1 + 4]);
  expect(await linesOf(pages, "/differences?source=default&says=total")).toEqual([
    expect.stringMatching(/planted total \| 1 \| 2 total$/),
  ]);
});

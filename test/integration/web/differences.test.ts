import { expect, test } from "vitest";
import { dayOf } from "../../../src/domain/time/days.ts";
import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { refusalOf, rowsOf, rowsOfAll, setupPages, setupViewer, textOf } from "../../support/pages.ts";
import { senderOn, setup } from "../../support/source.ts";

const eventsOf = (page: string) =>
  [...page.matchAll(/<tr class="event">(.*?)<\/tr>/gs)].map(([, row = ""]) => textOf(row));

test("differences show both numbers, of the export, of totals and of restatements, with a link to the cell", async () => {
  const bench = await setup({ days: 6, workspaces: [1] });
  const [workspace = ""] = bench.workspaceIds;
  const day = bench.dataStart;
  const range = { start: day, end: day + 2 * DAY_MS };
  const load = () => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await load();
  const sender = senderOn(bench.standin, 1, day);
  bench.standin.ledger.change(sender, 7);
  await bench.reconcile({ range });
  const environment = { USAGE_WORKSPACE_IDS: workspace };
  const pages = await setupPages(bench, { environment });
  const viewer = await setupViewer(bench, { environment });

  const [{ stored = 0 } = {}] = await bench.sql<{ stored: number }>(
    "SELECT stored_amount::bigint AS stored FROM reporting_detail.usage_reconciliation WHERE group_by = 'workspace'",
  );
  const numbers = (first: number, second: number, word: string) =>
    `${first.toLocaleString("en-US")} ${second.toLocaleString("en-US")} ${word}`;
  const open = await pages.get("/differences?source=default");
  expect(open.status).toBe(200);
  const rows = rowsOf(open.text);
  expect(rows).toHaveLength(4);
  const shown = (number: number) => number.toLocaleString("en-US");
  // One event, with a line for each dimension.
  expect(eventsOf(open.text)).toEqual([
    expect.stringContaining(
      `: the export says ${shown(stored + 7)} , and ${shown(stored)} are stored found `,
    ),
  ]);
  const byWorkspace = rows.find((row) => row.includes("Workspace by day")) ?? "";
  expect(byWorkspace).toContain(numbers(stored, stored + 7, "export"));
  const [from, to] = [day, day + DAY_MS].map((at) => new Date(at).toISOString().slice(0, 10));
  expect(open.text).toContain(
    `/cell?source=default&amp;workspace=${workspace}&amp;group_by=workspace&amp;stride=day&amp;from=${from}&amp;to=${to}`,
  );
  // An address of a user is for operators only.
  const email = sender.user?.email ?? "";
  expect(email).toContain("@");
  expect(open.text).toContain(email);
  const masked = await viewer.get("/differences?source=default");
  expect(masked.text).toContain(`user ${sender.user?.id}`);
  expect(masked.text).not.toContain(email);

  await load();
  await bench.reconcile({ range });
  const restated = (await pages.get("/differences?group_by=workspace")).text;
  const after = rowsOf(restated);
  expect(after).toHaveLength(1);
  expect(eventsOf(restated)[0]).toContain(
    `a final count changed from ${shown(stored)} to ${shown(stored + 7)}`,
  );
  expect(after[0]).toContain(numbers(stored + 7, stored, "before"));
  // The chart of its usage marks the day, and no other.
  for (const [per, at] of [
    ["day", from],
    ["month", `${from?.slice(0, 7)}-01`],
  ]) {
    const { text } = await pages.get(`/usage?by=project&per=${per}&from=${from}&to=${dayOf(bench.today)}`);
    const marked = [...text.matchAll(/<title>(\S+): [^<]*, changed when it was final/g)].map(
      ([, day]) => day,
    );
    expect(marked).toEqual([at]);
  }
  const all = eventsOf((await pages.get("/differences?group_by=workspace&state=all")).text);
  expect(all.map((row) => /the export says|a final count/.exec(row)?.[0]).sort()).toEqual([
    "a final count",
    "the export says",
  ]);
  expect(textOf((await pages.get("/differences?from=2020-01-01&to=2020-01-02")).text)).toContain(
    "No difference that is left, and no restatement, is recorded of days from 2020-01-01 to 2020-01-01",
  );

  // Many rows of one instant come page by page, each once, together with a total and what came before.
  await bench.sql(
    `INSERT INTO usage.reconciliation_difference
       (scope_id, external_id, bucket_start, kind, stored_traces, export_traces, state, fetch_number)
     SELECT scope_id, 'planted ' || n, $1, 'traces_differ', n, n + 1, 'open', 1
     FROM usage.trace_scope, generate_series(1, 120) n WHERE stride = 'day' AND group_by = 'project'`,
    [new Date(day).toISOString()],
  );
  await bench.sql(
    `INSERT INTO usage.control_difference
       (scope_id, kind, period_start, period_end, external_id, stored_traces, control_traces, state, fetch_number, found_at)
     SELECT scope_id, 'stride_total', $1, $1::timestamptz + interval '7 days', 'planted total', 1, 2, 'platform_disagrees', 1, d.found_at
     FROM usage.trace_scope, (SELECT max(found_at) AS found_at FROM usage.reconciliation_difference) d
     WHERE stride = 'day' AND group_by = 'project'`,
    [new Date(day).toISOString()],
  );
  const seen = await rowsOfAll(pages, "/differences?source=default");
  const ids = seen.flatMap((row) => /planted (\d+)/.exec(row)?.[1] ?? []);
  expect([ids.length, new Set(ids).size, seen.length]).toEqual([120, 120, 120 + 1 + 4]);
  expect(eventsOf((await pages.get("/differences?source=default&says=total")).text)).toEqual([
    expect.stringMatching(
      new RegExp(
        `^${from} to ${dayOf(day + 6 * DAY_MS)}, .*: a total differs from the sum of the stored days`,
      ),
    ),
  ]);

  for (const wrong of ["before=xyz", "before=W10", "from=2026-13-01", "says=everybody", "state=odd"])
    expect(await refusalOf(pages, `/differences?${wrong}`), wrong).toBe("400 query_invalid");
});

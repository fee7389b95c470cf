import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { runInline } from "../../../../src/core/pipeline/extract/run-inline.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, setReadable, setup, workspaceAt } from "../../../support/source.ts";
import { differences, inStore, wrongFigures } from "../../../support/tables.ts";

/** A key that loses a workspace gets empty responses. The zeros that it stores until somebody notices are withdrawn. */

interface Figure {
  readonly usage_date: string;
  readonly traces: number | null;
  readonly coverage_status: string;
  readonly is_final: boolean;
}

const IDLE = 4;
const UNVERIFIED = { traces: null, coverage_status: "unverified", is_final: false };

const figures = (bench: Bench, index: number) =>
  bench.sql<Figure>(
    `SELECT usage_date::text, traces, coverage_status, is_final FROM reporting.fct_usage_workspace_daily
     WHERE workspace_id = $1 ORDER BY usage_date`,
    [workspaceAt(bench.standin, index).id],
  );
const zeros = async (bench: Bench, index: number) => {
  const { id } = workspaceAt(bench.standin, index);
  const [row] = await bench.sql<Record<string, number>>(
    `SELECT (SELECT count(*) FROM reporting.fct_usage_workspace_daily WHERE workspace_id = $1 AND traces = 0)::integer AS days,
            (SELECT count(*) FROM reporting_detail.fct_usage_workspace_hourly WHERE workspace_id = $1 AND traces = 0)::integer AS hours,
            (SELECT count(*) FROM reporting_detail.fct_usage_monthly WHERE group_by = 'workspace' AND workspace_id = $1 AND traces = 0)::integer AS months,
            (SELECT count(*) FROM reporting_detail.usage_coverage_daily WHERE workspace_id = $1 AND status = 'empty')::integer AS empty`,
    [id],
  );
  return row;
};
const NONE = { days: 0, hours: 0, months: 0, empty: 0 };

test.each([true, false])(
  "a workspace lost between contact and fetches is unverified, not zero (listing %s), and comes back by itself",
  async (listing) => {
    const bench = await setup({ workspaces: [0, 1], standin: { listing } });
    const ids = bench.workspaceIds;
    await bench.sync({
      opened: (source) => {
        if (listing) setReadable(bench.standin, 1, false);
        else {
          const { fresh } = source.access;
          source.access.fresh = async () => {
            await fresh();
            setReadable(bench.standin, 1, false);
          };
        }
      },
    });
    expect(await figures(bench, 1)).toEqual(
      Array.from({ length: 7 }, (_, i) => ({
        usage_date: new Date(bench.dataStart + i * DAY_MS).toISOString().slice(0, 10),
        ...UNVERIFIED,
      })),
    );
    expect(await zeros(bench, 1)).toEqual(NONE);
    expect(await wrongFigures(bench, { workspaceIds: ids.slice(0, 1) })).toEqual([]);

    // The next syncs leave it so, and say it once.
    await bench.sync();
    await bench.sync();
    expect(await zeros(bench, 1)).toEqual(NONE);
    const told = bench.logs.filter((line) => line.code === "zeros_invalidated");
    expect(told).toMatchObject([{ workspaceId: ids[1], zeros: 7 * 4 }]);
    expect(bench.logs.filter((line) => line.code === "workspace_unlisted")).toHaveLength(listing ? 1 : 0);

    setReadable(bench.standin, 1, true);
    await bench.sync();
    if (!listing) await bench.sync();
    expect(await wrongFigures(bench, { workspaceIds: ids })).toEqual([]);
    expect(await bench.sql("SELECT * FROM usage.failure")).toEqual([]);
    expect(await bench.sql("SELECT FROM reporting.fct_usage_workspace_daily WHERE is_final")).toHaveLength(6);
  },
);

test.each(["without statistics", "with statistics of another workspace"])(
  "%s, a workspace that no usage named is not known",
  async (what) => {
    const bench = await setup();
    const match = { path: "/api/v1/workspaces/current/stats" };
    const { id } = workspaceAt(bench.standin, 0);
    const proxy = await startProxy(bench.standin.url, ({ url }) =>
      url.pathname === match.path ? JSON.stringify({ tenant_id: id }) : undefined,
    );
    const isAbsent = what === "without statistics";
    if (isAbsent) bench.standin.faults.script({ fault: { kind: "status", status: 404 }, times: 1000, match });
    await bench.sync(isAbsent ? {} : { baseUrl: proxy.url });
    expect(await figures(bench, IDLE)).toMatchObject(Array.from({ length: 7 }, () => UNVERIFIED));
    expect(await zeros(bench, IDLE)).toEqual(NONE);
  },
);

test("zeros since the last own statistics are withdrawn if the next ones are refused", async () => {
  const bench = await setup();
  const source = await bench.open();
  const tasks = await planSource(source, {
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
    reprocess: "missing",
  });
  await runInline({ ...source, access: { ...source.access, confirm: async () => {} } }, tasks);
  expect((await figures(bench, IDLE)).slice(0, 6).map(({ traces }) => traces)).toEqual([0, 0, 0, 0, 0, 0]);
  bench.standin.access.listsUnreadable = true;
  setReadable(bench.standin, IDLE, false);
  await bench.open();
  expect((await figures(bench, IDLE)).slice(0, 6)).toMatchObject(Array.from({ length: 6 }, () => UNVERIFIED));
  expect(await bench.sql("SELECT external_id FROM usage.lost_workspace")).toEqual([
    { external_id: workspaceAt(bench.standin, IDLE).id },
  ]);
});

test("if usage contradicts the statistics of a workspace, every zero that rests on them is loaded again", async () => {
  const bench = await setup();
  // The statistics can be read, and usage cannot: what such a server does is not documented.
  const unread = workspaceAt(bench.standin, 1);
  const proxy = await startProxy(bench.standin.url, ({ url, text }) => {
    if (!url.pathname.endsWith("/granular-usage")) return undefined;
    const response = JSON.parse(text) as { usage: { dimensions: { workspace_id?: string } }[] };
    const isAlone = url.searchParams.getAll("workspace_ids").join() === unread.id;
    const left = response.usage.filter(({ dimensions }) => !isAlone && dimensions.workspace_id !== unread.id);
    return JSON.stringify({ ...response, usage: left });
  });
  await bench.sync({ baseUrl: proxy.url });
  expect(await figures(bench, 1)).toMatchObject(Array.from({ length: 7 }, () => ({ traces: 0 })));

  await bench.sync();
  expect(await wrongFigures(bench)).toEqual([]);
  expect((await figures(bench, 1)).filter(({ is_final }) => is_final)).toHaveLength(3);
  expect(await bench.sql("SELECT * FROM usage.failure")).toEqual([]);
  expect(bench.logs.filter(({ code }) => code === "zeros_invalidated")).toMatchObject([
    { workspaceIds: [unread.id] },
  ]);
});

test("access lost before the second fetch of an emptied window deletes nothing", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  await bench.sync();
  const before = await inStore(bench);
  // A day that has just begun may have no usage yet.
  const zerosBefore = await zeros(bench, 1);
  const range = { start: bench.dataStart, end: bench.today };
  const source = await bench.open({ opened: () => setReadable(bench.standin, 1, false) });
  const tasks = await planSource(source, {
    wanted: [{ stride: "day", range }],
    workspaceIds: bench.workspaceIds.slice(1),
    reprocess: "all",
  });
  const run = await runInline(source, tasks);
  expect(run.counts.reduce((sum, { rows }) => sum + rows.retired, 0)).toBe(0);
  expect(differences(await inStore(bench), before)).toEqual([]);
  expect(await zeros(bench, 1)).toMatchObject({ days: zerosBefore?.days, months: zerosBefore?.months });
});

test("a listing proves nothing for a deleted workspace, a response that names it does", async () => {
  const bench = await setup();
  for (const index of [1, 4]) workspaceAt(bench.standin, index).deletedAt = bench.today - 2 * DAY_MS;
  await bench.sync();
  const used = await figures(bench, 1);
  expect(used.every(({ traces }) => traces !== null)).toBe(true);
  expect(await figures(bench, 4)).toMatchObject(Array.from({ length: 7 }, () => UNVERIFIED));
  const before = await inStore(bench);
  for (const project of bench.standin.organisation.projects) {
    if (project.workspace === workspaceAt(bench.standin, 1)) project.dropped = true;
  }
  const { run } = await bench.sync();
  expect(run.counts.reduce((sum, { rows }) => sum + rows.retired, 0)).toBe(0);
  expect(differences(await inStore(bench), before)).toEqual([]);
  expect(await zeros(bench, 1)).toMatchObject({ days: 0 });
});

import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { newestFetch } from "../../../../src/store/figures/load-totals.ts";
import { type Bench, beginProject, setup } from "../../../support/source.ts";
import { differences, dump, inStore, wrongFigures } from "../../../support/tables.ts";

/** Rows that are gone from the platform are retired. Those that the key may no longer see are not: lost-access.test.ts. */

const notFinal = (bench: Bench) => ({ start: bench.today - 3 * DAY_MS, end: bench.today + DAY_MS });

test("a dropped project's rows are retired when their window is fetched again", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const project = bench.standin.organisation.projects.find(
    ({ workspace }) => workspace === bench.standin.organisation.workspaces[0],
  );
  if (project === undefined) throw new Error("no project");
  const before = await inStore(bench, ["day"]);
  const finalBefore = [...before].filter(([key]) => key.includes(project.id));
  project.dropped = true;
  const { run } = await bench.sync();
  const [{ n } = { n: -1 }] = await bench.sql<{ n: number }>(
    `SELECT count(*) AS n FROM reporting.fct_usage_project_daily
     WHERE project_id = $1 AND usage_date >= $2::date`,
    [project.id, new Date(bench.today - 3 * DAY_MS).toISOString().slice(0, 10)],
  );
  expect(n).toBe(0);
  expect(run.counts.reduce((sum, { rows }) => sum + rows.retired, 0)).toBeGreaterThan(0);
  expect(run.counts.reduce((sum, { rows }) => sum + rows.restated, 0)).toBe(0);
  // Final time stays as it was until it is asked for.
  const kept = [...(await inStore(bench, ["day"]))].filter(([key]) => key.includes(project.id));
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.length).toBeLessThan(finalBefore.length);

  const range = { start: bench.dataStart, end: bench.today + DAY_MS };
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  expect(await wrongFigures(bench)).toEqual([]);
  expect((await dump(bench)).restatements.filter((line) => line.includes(project.id))).toHaveLength(
    kept.length,
  );
});

test("only a second agreeing answer deletes every row of a window", async () => {
  const bench = await setup({ workspaces: [0] });
  // Its usage of before stays, or it could not be told from a workspace that the key has lost.
  const old = beginProject(bench.standin, { workspace: 0, at: bench.dataStart, traces: 1 });
  await bench.sync();
  const held = [...(await inStore(bench))].map(([key]) => key.split(" "));
  for (const project of bench.standin.organisation.projects) project.dropped = project !== old;
  const before = await newestFetch(bench.store.db);
  const { run, requests, planned } = await bench.sync();
  expect(run.failures).toEqual([]);
  const windows = await bench.sql<{ group_by: string; stride: string; from: string; to: string }>(
    `SELECT DISTINCT group_by, stride, to_json(period_start AT TIME ZONE 'UTC')#>>'{}' || 'Z' AS from,
            to_json(period_end AT TIME ZONE 'UTC')#>>'{}' || 'Z' AS to
     FROM usage.fetch WHERE fetch_number > $1 AND purpose = 'load'`,
    [before],
  );
  expect(windows).toHaveLength(planned);
  // Of the hours just begun some hold nothing yet, as the hour of the day has it.
  const emptied = windows.filter(({ group_by, stride, from, to }) =>
    held.some(
      ([by, of, at = ""]) =>
        by === group_by &&
        of === stride &&
        Date.parse(at) >= Date.parse(from) &&
        Date.parse(at) < Date.parse(to),
    ),
  ).length;
  expect(emptied).toBeGreaterThan(planned / 2);
  const counted = run.counts.reduce((sum, one) => sum + one.requests, 0);
  expect(counted).toBe(planned + emptied);
  expect(requests).toBeGreaterThanOrEqual(counted);
  expect(differences(await inStore(bench, ["hour"]), new Map())).toEqual([]);
  const outcomes = await bench.sql<{ outcome: string; n: number }>(
    "SELECT outcome, count(*) AS n FROM usage.fetch GROUP BY 1 ORDER BY 1",
  );
  expect(outcomes.find(({ outcome }) => outcome === "unconfirmed")?.n).toBe(emptied);
});

test("a proof of access that was already being renewed does not count as newer", async () => {
  const { standin, open } = await setup({ workspaces: [0] });
  const source = await open();
  const listings = () =>
    standin.requests.recent.filter(({ url }) => url.startsWith("/api/v1/workspaces")).length;
  const before = listings();
  const first = source.access.renew();
  // As of two tasks that found their windows emptied while the listing of a third was on its way.
  await Promise.all([first, source.access.renew(), source.access.renew()]);
  expect(listings() - before).toBe(2);
  await source.access.renew();
  expect(listings() - before).toBe(3);
});

test("an empty answer that a second one contradicts retires nothing", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const before = await dump(bench);
  const { projects } = bench.standin.organisation;
  const source = await bench.open({
    settings: { hourlyForMs: 0 },
  });
  // Empty for one answer of each grouping only: the client hears of the second one through the renewed evidence.
  for (const project of projects) project.dropped = true;
  const renew = source.access.renew;
  const { planSource } = await import("../../../../src/pipeline/sync/plan.ts");
  const { runInline } = await import("../../../../src/pipeline/extract/run-inline.ts");
  const tasks = await planSource(source, {
    wanted: [{ stride: "day", range: notFinal(bench) }],
    reprocess: "all",
  });
  const run = await runInline(
    {
      ...source,
      access: {
        ...source.access,
        renew: async () => {
          await renew();
          for (const project of projects) project.dropped = false;
        },
      },
    },
    tasks.slice(0, 1),
  );
  expect(run.failures).toEqual([]);
  expect(await dump(bench)).toEqual(before);
});

test("a workspace that is no longer configured raises no alarm", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  await bench.sync();
  await bench.sync({ config: { workspaceIds: bench.workspaceIds.slice(0, 1) } });
  expect(bench.logs.filter((line) => line.code === "workspace_unlisted")).toEqual([]);
  expect(await bench.sql("SELECT FROM usage.workspace WHERE unlisted_since IS NOT NULL")).toEqual([]);
});

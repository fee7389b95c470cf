import { expect, test } from "vitest";
import { monthAt, monthBefore } from "../../../../src/core/domain/months/month.ts";
import { DAY_MS, floorToGrid } from "../../../../src/core/domain/time/stride.ts";
import { openIncidents } from "../../../../src/features/alerts/conditions.ts";
import { unloadedWorkspaces } from "../../../../src/features/costs/bill-terms.store.ts";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import { usageEtl } from "../../../support/cli.ts";
import type { Bench } from "../../../support/source.ts";
import { setup } from "../../../support/source.ts";

const setupAll = (options: Parameters<typeof setup>[0] = {}) =>
  setup({ days: 40, ...options, standin: { workspaceIds: "optional", ...options.standin } });
const read = async (bench: Bench) => readBill(await bench.open(), { reach: "month", isPatient: false });
const incidentsOf = async ({ store }: Bench) => {
  const found = await openIncidents(store.db, { staleAfterMs: 1000 * DAY_MS, firstSource: "default" });
  return (found.get("default") ?? []).filter(({ kind }) => kind === "workspace_unloaded");
};
const monthsOf = ({ now }: Bench) => [monthBefore(monthAt(now)), monthAt(now)];

function inLedger(
  { standin, dataStart, now }: Bench,
  workspaceId: string,
  month: { start: string; end: string },
) {
  const edges = [
    Math.max(dataStart, Date.parse(month.start)),
    Math.min(floorToGrid(now, DAY_MS), Date.parse(month.end)),
  ];
  if ((edges[0] ?? 0) >= (edges[1] ?? 0)) return 0;
  return standin.organisation.streams
    .filter(({ project }) => project.workspace.id === workspaceId && !project.dropped)
    .reduce((sum, stream) => sum + (standin.ledger.counts(stream, edges)[0] ?? 0), 0);
}

const withoutIds = ({ standin }: Bench) =>
  standin.requests.recent.filter(
    ({ url }) => url.includes("granular-usage") && !url.includes("workspace_ids"),
  ).length;

async function kept(bench: Bench) {
  const months = monthsOf(bench).map(({ start }) =>
    unloadedWorkspaces(bench.store.db, { source: "default", monthStart: start }),
  );
  return (await Promise.all(months))
    .flat()
    .map(({ workspaceId, name, traces }) => ({ workspaceId, name, traces }));
}

function expected(bench: Bench) {
  const { organisation, access } = bench.standin;
  const others = organisation.workspaces.filter(
    (one) => !bench.workspaceIds.includes(one.id) && access.canRead(one),
  );
  return monthsOf(bench).flatMap((month) =>
    others
      .map(({ id, name }) => ({ workspaceId: id, name, traces: inLedger(bench, id, month) }))
      .filter(({ traces }) => traces > 0)
      .sort((one, other) => other.traces - one.traces),
  );
}

test("workspaces that a source does not name are kept with their traces of each month, without an alert", async () => {
  const bench = await setupAll({ workspaces: [0] });
  await bench.sync();
  expect(await read(bench)).toMatchObject({ parts: { all_workspaces: { refusal: null } }, failed: [] });
  expect(expected(bench).length).toBeGreaterThan(1);
  expect(await kept(bench)).toEqual(expected(bench));
  expect(await incidentsOf(bench)).toEqual([]);
  for (const { name, start } of monthsOf(bench)) {
    const left = await unloadedWorkspaces(bench.store.db, { source: "default", monthStart: start });
    const { stdout } = await usageEtl(["bill", name], { DATABASE_URL: bench.databaseUrl });
    const traces = left.reduce((sum, one) => sum + one.traces, 0);
    if (traces === 0) expect(stdout).not.toContain("Not in this bill");
    else expect(stdout).toContain(`Not in this bill: ${traces.toLocaleString("en-US")} traces of workspace`);
  }
});

test("a workspace that is loaded later, or was before, is not one that no sync loads", async () => {
  const bench = await setupAll({ workspaces: [0] });
  await bench.sync();
  await read(bench);
  const [first = ""] = bench.workspaceIds;
  const second = bench.standin.organisation.workspaces[1]?.id ?? "";
  const ofSecond = async () => (await kept(bench)).filter(({ workspaceId }) => workspaceId === second);
  const [last] = monthsOf(bench);
  await bench.sql(
    `INSERT INTO usage.provider_total
     SELECT source_id, $1, 'm', $2, 'Traces', 'traces', 12345678, 'unknown_workspace', NULL, 1, now() FROM usage.source`,
    [last?.start, second],
  );
  expect((await ofSecond()).map(({ traces }) => traces)).toContain(12_345_678);
  await bench.sync({ config: { workspaceIds: [first, second] } });
  expect(await ofSecond()).toEqual([]);
  await bench.sync({ config: { workspaceIds: [first] } });
  expect(await ofSecond()).toEqual([]);
  await readBill(await bench.open({ config: { workspaceIds: [first] } }), {
    reach: "month",
    isPatient: false,
  });
  expect(await ofSecond()).toEqual([]);
});

test("a workspace with usage that no listing shows is an incident until it is loaded", async () => {
  const bench = await setupAll();
  const { organisation, access } = bench.standin;
  const [last] = monthsOf(bench);
  const hidden = organisation.workspaces.find((one) => last && inLedger(bench, one.id, last) > 0);
  if (hidden === undefined) throw new Error("no workspace has traces");
  access.unlisted.add(hidden);
  await bench.sync();
  expect((await bench.open()).workspaceIds).not.toContain(hidden.id);
  await read(bench);
  const traces = monthsOf(bench).reduce((sum, month) => sum + inLedger(bench, hidden.id, month), 0);
  expect(await incidentsOf(bench)).toMatchObject([
    { count: 1, message: expect.stringContaining(`${traces.toLocaleString("en-US")} traces of 1 workspace`) },
  ]);

  access.unlisted.delete(hidden);
  await bench.sync();
  expect(await kept(bench)).toEqual([]);
  expect(await incidentsOf(bench)).toEqual([]);
  await read(bench);
  expect(await kept(bench)).toEqual([]);
  expect(await incidentsOf(bench)).toEqual([]);
});

test("a server that requires ids is asked once, and remembered as one that refuses", async () => {
  const bench = await setupAll({ days: 3, standin: { workspaceIds: "required" } });
  await bench.sync();
  const { parts } = await read(bench);
  expect(parts.all_workspaces).toMatchObject({ read: 0, refusal: expect.stringContaining("422") });
  const first = withoutIds(bench);
  const after = async (days: number) => {
    await bench.sql(`UPDATE usage.bill_part SET requested_at = now() - interval '${days} days'`);
    await readBill(await bench.open(), { reach: "month", isPatient: true });
    return withoutIds(bench);
  };
  expect(await after(0)).toBe(first);
  expect(await after(6)).toBe(first);
  expect(await after(7)).toBeGreaterThan(first);
  expect(await kept(bench)).toEqual([]);
});

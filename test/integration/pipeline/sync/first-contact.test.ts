import { describe, expect, onTestFinished, test } from "vitest";
import { startStandin } from "../../../../src/features/standin/server.ts";
import { eachRecord, startProxy } from "../../../support/proxy.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { differences, dump, inStore, wrongFigures } from "../../../support/tables.ts";

/** Which source this is, what it reads, and what the first requests of a process may meet. */

async function anotherOrganization(bench: Bench) {
  const other = await startStandin({
    seed: 99,
    now: () => bench.now,
    apiKey: bench.standin.apiKey,
    dataStart: new Date(bench.dataStart).toISOString().slice(0, 10),
  });
  onTestFinished(() => other.close());
  return other;
}

describe("binding", () => {
  test("a key of another organization is refused and stores nothing", async () => {
    const bench = await setup();
    await bench.sync();
    const before = await dump(bench);
    const known = await bench.sql("SELECT * FROM usage.workspace ORDER BY 1");
    const other = await anotherOrganization(bench);
    await expect(bench.sync({ baseUrl: other.url })).rejects.toMatchObject({ code: "organization_changed" });
    expect(await dump(bench)).toEqual(before);
    expect(await bench.sql("SELECT * FROM usage.workspace ORDER BY 1")).toEqual(known);
    const { run } = await bench.sync();
    expect(run.counts.reduce((sum, { rows, failed }) => sum + rows.unverified + failed, 0)).toBe(0);
    expect(await dump(bench)).toEqual(before);
  });

  test("two sources of one organization that share no workspace are two sources", async () => {
    const bench = await setup({ workspaces: [0] });
    const { workspaces } = bench.standin.organisation;
    await bench.sync();
    await bench.sync({ config: { slug: "second", workspaceIds: [workspaces[1]?.id ?? ""] } });
    const rows = await bench.sql<{ source_id: string; workspace_id: string }>(
      "SELECT DISTINCT source_id, workspace_id FROM reporting.fct_usage_workspace_daily WHERE traces > 0 ORDER BY 1",
    );
    expect(rows).toEqual([
      { source_id: "default", workspace_id: workspaces[0]?.id },
      { source_id: "second", workspace_id: workspaces[1]?.id },
    ]);
  });
});

describe("a configured workspace", () => {
  const TYPO = "00000000-0000-4000-8000-00000000dead";
  const known = (bench: Bench) =>
    bench.sql<{ id: string }>(
      "SELECT external_id AS id FROM usage.workspace JOIN usage.entity USING (entity_id) ORDER BY 1",
    );
  const withTypo = (bench: Bench) => ({ config: { workspaceIds: [...bench.workspaceIds, TYPO] } });

  test.each([true, false])(
    "that nothing shows is refused and leaves nothing (listing: %s)",
    async (listing) => {
      const bench = await setup({ workspaces: [0], standin: { listing } });
      await expect(bench.open(withTypo(bench))).rejects.toMatchObject({
        code: "workspace_not_shown",
        message: expect.stringMatching(new RegExp(`default .*${TYPO}`)),
        next: expect.stringContaining(`workspace add ${TYPO} --source default --force`),
      });
      expect(await known(bench)).toEqual([]);
      // Usage alone shows it: a listing may lack what the key reads.
      await bench.open();
      expect(await known(bench)).toEqual(bench.workspaceIds.map((id) => ({ id })));
    },
  );

  test("that nothing shows is left out by the service, which says so and loads the others", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync({ ...withTypo(bench), leavesOutUnshown: true });
    expect(bench.logs).toContainEqual(
      expect.objectContaining({ level: 50, code: "workspace_not_shown", workspaceIds: [TYPO] }),
    );
    expect(await known(bench)).toEqual(bench.workspaceIds.map((id) => ({ id })));
    expect(await wrongFigures(bench)).toEqual([]);
    // Without any other, all that are listed would be loaded in their place.
    const only = { config: { workspaceIds: [TYPO] }, leavesOutUnshown: true };
    await expect(bench.open(only)).rejects.toMatchObject({ code: "workspace_not_shown" });
  });
});

describe("passing faults", () => {
  test.each([
    ["/api/v1/workspaces", "status"],
    ["/api/v1/workspaces", "reset"],
    ["/api/v1/orgs/current", "status"],
    ["/api/v1/orgs/current", "reset"],
  ] as const)("one on %s (%s) is waited out", async (path, kind) => {
    const bench = await setup({ workspaces: [0] });
    const fault = kind === "reset" ? ({ kind } as const) : ({ kind, status: 429, retry_after: 3 } as const);
    bench.standin.faults.script({ fault, times: 2, match: { path } });
    await bench.open();
    expect(bench.waits).toHaveLength(2);
    if (kind === "status") expect(bench.waits).toEqual([3000, 3000]);
  });

  test("that stays is an error that says it may pass", async () => {
    const bench = await setup({ workspaces: [0] });
    bench.standin.faults.script({ fault: { kind: "status", status: 502 }, times: 100 });
    await expect(bench.open()).rejects.toMatchObject({ code: "server_error", retryable: true });
    expect(bench.waits).toHaveLength(2);
  });
});

describe("without a response over all of time", () => {
  const about = (bench: Bench) => ({
    from: new Date(bench.dataStart).toISOString(),
    to: new Date(bench.dataStart + 1).toISOString(),
  });

  test("a sync loads what answers name, and no zero of what had usage", async () => {
    const bench = await setup();
    await bench.sync();
    const before = await inStore(bench);
    const match = { path: "granular-usage", during: about(bench) };
    bench.standin.faults.script({ fault: { kind: "status", status: 502 }, times: 100, match });
    await bench.sql("UPDATE usage.workspace SET readable_at = readable_at - interval '1 hour'");
    const { run } = await bench.sync();
    expect(run.failures).toEqual([]);
    expect(differences(await inStore(bench), before)).toEqual([]);
    const unverified = await bench.sql(
      `SELECT DISTINCT e.external_id FROM usage.failure f JOIN usage.scope s USING (scope_id)
       JOIN usage.workspace w ON w.entity_id = s.workspace_id JOIN usage.entity e USING (entity_id)
       WHERE w.used_before IS NULL`,
    );
    expect(unverified).toEqual([]);
    expect(bench.logs.filter(({ msg }) => String(msg).startsWith("Access was not proven"))).toHaveLength(2);
  });

  test("a source is loaded all the same, and the next contact doubts nothing of it", async () => {
    const bench = await setup();
    const match = { path: "granular-usage", during: about(bench) };
    bench.standin.faults.script({ fault: { kind: "status", status: 502 }, times: 3, match });
    const { run } = await bench.sync();
    expect(run.failures).toEqual([]);
    expect(bench.logs.filter(({ msg }) => String(msg).startsWith("Access was not proven"))).toHaveLength(1);
    const before = await inStore(bench);
    await bench.sync();
    expect(await bench.sql("SELECT * FROM usage.withdrawal")).toEqual([]);
    expect(differences(await inStore(bench), before)).toEqual([]);
  });

  test("a wrong record in it costs the proof of its own workspace", async () => {
    const bench = await setup();
    const [first = ""] = bench.standin.organisation.workspaces.map(({ id }) => id);
    const spoil = eachRecord((record, url) => {
      const { searchParams } = url;
      const isOverAll =
        Date.parse(searchParams.get("start_time") ?? "") === bench.dataStart &&
        searchParams.get("group_by") === "workspace";
      return isOverAll && Object.values(record.dimensions).includes(first)
        ? { ...record, traces: -1 }
        : record;
    });
    const proxy = await startProxy(bench.standin.url, spoil);
    await bench.sync();
    await bench.sql("UPDATE usage.workspace SET readable_at = NULL");
    await bench.open({ baseUrl: proxy.url });
    const unproven = await bench.sql<{ id: string }>(
      "SELECT external_id AS id FROM usage.workspace JOIN usage.entity USING (entity_id) WHERE readable_at IS NULL",
    );
    expect(unproven).toEqual([{ id: first }]);
  });
});

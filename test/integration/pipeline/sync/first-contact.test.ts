import { describe, expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../../src/config/secret.ts";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { startStandin } from "../../../../src/local/standin/server.ts";
import { eachRecord, startProxy } from "../../../support/proxy.ts";
import { type Bench, setReadable, setup, workspaceAt } from "../../../support/source.ts";
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
    // With the right key all is as it was: nothing of the other organization is asked for.
    const { run } = await bench.sync();
    expect(run.counts.reduce((sum, { rows, failed }) => sum + rows.unverified + failed, 0)).toBe(0);
    expect(await dump(bench)).toEqual(before);
  });

  test("a second source may not read a workspace of the first, which goes on", async () => {
    const bench = await setup({ workspaces: [0, 1] });
    await bench.sync();
    const second = { slug: "second", workspaceIds: bench.workspaceIds.slice(1) };
    await expect(bench.sync({ config: second })).rejects.toMatchObject({ code: "workspace_shared" });
    await expect(bench.sync({ config: { slug: "all", workspaceIds: [] } })).rejects.toMatchObject({
      code: "workspace_shared",
    });
    const { run } = await bench.sync();
    expect(run.failures).toEqual([]);
    expect(await wrongFigures(bench)).toEqual([]);
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

  test("a data start that moves later hides no loaded figure", async () => {
    const bench = await setup({ workspaces: [0] });
    const later = new Date(bench.dataStart + 3 * DAY_MS).toISOString().slice(0, 10);
    const start = () => bench.sql("SELECT data_start::text FROM usage.source");
    const figures = () =>
      bench.sql(
        `SELECT (SELECT sum(traces) FROM reporting.fct_usage_workspace_daily) AS by_workspace,
                (SELECT sum(traces) FROM reporting.fct_usage_project_daily) AS by_project,
                (SELECT sum(traces) FROM reporting_detail.fct_usage_workspace_monthly WHERE is_complete) AS by_month,
                (SELECT count(*) FROM reporting.dim_date) AS dates`,
      );
    await bench.open({ config: { dataStart: later } });
    expect(await start()).toEqual([{ data_start: later }]);
    await bench.sync();
    const before = await figures();
    await bench.sync({ config: { dataStart: later } });
    expect(await figures()).toEqual(before);
    expect(await start()).toEqual([{ data_start: new Date(bench.dataStart).toISOString().slice(0, 10) }]);
  });

  test("a rotated key changes no figure and makes failures due at once", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const before = await dump(bench);
    await bench.sql(
      `INSERT INTO usage.failure SELECT scope_id, now() - interval '1 day', now(), 'failed', 'x', 'x', 1, 1, now(), now() + interval '1 day'
       FROM usage.trace_scope LIMIT 1`,
    );
    bench.standin.access.apiKey = "rotated";
    const apiKey = new Secret("rotated");
    await bench.open({ config: { apiKey } });
    expect(await dump(bench)).toEqual(before);
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

  test("that was known before is loaded on, whatever the platform shows", async () => {
    const bench = await setup({ workspaces: [0, 1] });
    await bench.sync();
    setReadable(bench.standin, 1, false);
    expect((await bench.open()).workspaceIds).toHaveLength(2);
  });
});

describe("workspaces", () => {
  test("a source without listing and configuration is refused with what to set", async () => {
    const bench = await setup({ standin: { listing: false } });
    await expect(bench.open()).rejects.toMatchObject({
      code: "workspaces_unknown",
      next: expect.stringContaining("USAGE_WORKSPACE_IDS"),
    });
  });

  test("a deleted workspace's past usage and name are loaded", async () => {
    const bench = await setup();
    const deleted = workspaceAt(bench.standin, 1);
    deleted.deletedAt = bench.today - 2 * DAY_MS;
    const { run } = await bench.sync();
    expect(run.failures).toEqual([]);
    expect(await wrongFigures(bench)).toEqual([]);
    const rows = await bench.sql(
      "SELECT workspace_name, is_deleted FROM reporting.dim_workspace WHERE workspace_id = $1",
      [deleted.id],
    );
    expect(rows).toEqual([{ workspace_name: deleted.name, is_deleted: true }]);
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
    // `orgs/current` is also the beginning of the billing routes: first contact is what comes first.
    bench.standin.faults.script({ fault, times: 2, match: { path } });
    await bench.open();
    expect(bench.waits).toHaveLength(2);
    if (kind === "status") expect(bench.waits).toEqual([3000, 3000]);
  });

  test("on the request that proves access by usage is retried", async () => {
    const bench = await setup({ workspaces: [0], standin: { listing: false } });
    const source = await bench.open();
    bench.standin.faults.script({ fault: { kind: "status", status: 503 }, times: 2 });
    await source.access.renew();
    expect(bench.waits).toHaveLength(2);
  });

  test("that stays is an error that says it may pass", async () => {
    const bench = await setup({ workspaces: [0] });
    bench.standin.faults.script({ fault: { kind: "status", status: 502 }, times: 100 });
    await expect(bench.open()).rejects.toMatchObject({ code: "server_error", retryable: true });
    expect(bench.waits).toHaveLength(2);
  });
});

describe("without an answer over all of time", () => {
  /** Fails nothing that a sync asks for once everything is loaded. */
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
    // One that never had usage needs no more than its own statistics.
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

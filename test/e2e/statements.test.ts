import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import { bench, dayOf, document, envOf, run } from "../support/program.ts";
import { eachRecord, startProxy } from "../support/proxy.ts";
import type { Bench } from "../support/source.ts";
import { wrongFigures } from "../support/tables.ts";
import { inSchema } from "../support/views.ts";

/** What sync, backfill and status say about the range that was asked for, against the tables. */

interface Loaded {
  readonly range: readonly { status: string }[];
}

/** So many answers by a dimension are 404. */
function refuse({ standin }: Bench, groupBy: string, times: number): void {
  const match = { path: "granular-usage", query: { group_by: groupBy } };
  standin.faults.script({ fault: { kind: "status", status: 404 }, times, match });
}

/** The statuses of the range that a command reported. */
const statuses = (ended: Parameters<typeof document>[0]) =>
  new Set((document(ended) as [Loaded])[0].range.map(({ status }) => status));

test("a backfill after a failure fetches the failed part at once and ends with 0 only then", async () => {
  const made = await bench({ workspaces: [0] });
  const env = envOf(made);
  const range = ["--from", dayOf(made.dataStart), "--to", dayOf(made.today)];
  const backfill = ["backfill", ...range, "--inline", "--json"];
  refuse(made, "user", 2);
  const failed = await run(backfill, env);
  expect([failed.code, statuses(failed)]).toEqual([3, new Set(["failed", "final", "provisional"])]);
  const [first] = document(failed) as [Loaded];
  expect(first.range.filter(({ status }) => status === "failed")).toMatchObject([
    { code: "request_refused", buckets: 6, nextRetry: expect.stringMatching(/Z$/) },
  ]);
  const again = await run(backfill, env);
  expect([again.code, statuses(again)]).toEqual([3, new Set(["failed", "final", "provisional"])]);
  const text = await run(["backfill", ...range, "--inline"], env);
  expect([text.code, text.stdout]).toEqual([0, expect.stringContaining("All of it is loaded: by day")]);
  // It loaded days. No sync has loaded the hours that are kept.
  const status = await run(["status"], env);
  expect([status.code, status.stdout]).toEqual([3, expect.stringMatching(/^hours +[1-9]\d* missing/m)]);
  expect(status.stdout).toMatch(/^days +0 missing, 0 failed, 0 unverified/m);
});

test("sync asks about failed days at once, whoever failed, and ends with 3 while they fail", async () => {
  const made = await bench({ workspaces: [0] });
  const env = envOf(made);
  const proxy = await startProxy(made.standin.url, ({ url }) =>
    url.searchParams.get("group_by") === "project" ? "<html>Maintenance</html>" : undefined,
  );
  expect((await run(["sync", "--inline"], { ...env, USAGE_BASE_URL: proxy.url })).code).toBe(3);
  expect((await run(["sync", "--inline"], env)).code).toBe(0);
  expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);
});

test("a failure over final days is shown, and heals with the next sync after its retry time", async () => {
  const made = await bench({ workspaces: [0] });
  const env = envOf(made);
  expect((await run(["sync", "--inline"], env)).code).toBe(0);
  refuse(made, "user", 1);
  const range = ["--from", dayOf(made.dataStart), "--to", dayOf(made.dataStart + 2 * DAY_MS)];
  const all = await run(["backfill", ...range, "--reprocess", "all", "--inline", "--json"], env);
  expect([all.code, statuses(all)]).toEqual([3, new Set(["failed", "final"])]);
  expect((await run(["coverage", "--fail-on-gaps"], env)).code).toBe(4);

  // The service asks when the failure is due.
  await made.passTime();
  const due = await run(["status", "--json"], env);
  const [{ failures }] = document(due) as [{ failures: { nextRetry: string }[] }];
  expect(due.code).toBe(3);
  expect(failures).toHaveLength(1);
  expect(Date.parse(failures[0]?.nextRetry ?? "")).toBeGreaterThan(Date.now() - 60_000);
  expect((await run(["status"], env)).stdout).toMatch(/with\s+the\s+next\s+sync/);
  await made.sync();
  expect((await run(["coverage", "--fail-on-gaps"], env)).code).toBe(0);
  expect(document(await run(["status", "--json"], env))).toMatchObject([{ failures: [] }]);
  expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);
});

test("a listing without any workspace is an error that says what to check", async () => {
  const made = await bench({ workspaces: [] });
  const proxy = await startProxy(made.standin.url, ({ url }) =>
    url.pathname.endsWith("/workspaces") ? "[]" : undefined,
  );
  const env = { ...envOf(made), USAGE_WORKSPACE_IDS: "", USAGE_BASE_URL: proxy.url };
  for (const command of [["sync", "--inline"], ["doctor"]]) {
    const ended = await run(command, env);
    const said = (ended.stdout + ended.stderr).replaceAll(/\s+/g, " ");
    expect([command, ended.code, said]).toEqual([
      command,
      2,
      expect.stringMatching(/lists no workspace[\s\S]*key[\s\S]*\[workspaces_unknown\]/),
    ]);
  }
  // Known workspaces that a later listing leaves out are an alarm, and their days are not loaded.
  proxy.rewrite = () => undefined;
  expect((await run(["sync", "--inline"], env)).code).toBe(0);
  proxy.rewrite = ({ url }) => (url.pathname.endsWith("/workspaces") ? "[]" : undefined);
  const lost = await run(["sync", "--inline", "--json"], env);
  expect(lost.code).toBe(2);
  expect(lost.stderr).toContain('"code":"workspaces_unknown"');
});

describe("a server without hours that misplaces a bucket", () => {
  test.each([
    ["off the grid", (at: string) => at.replace("T00:", "T05:")],
    ["outside the window", () => "2025-01-01T00:00:00Z"],
  ])("%s: the backfill counts what it keeps as a failure", async (_, misplace) => {
    const made = await bench({ workspaces: [0], standin: { contract: "day-granular" } });
    const [from, to] = [made.dataStart, made.dataStart + 2 * DAY_MS].map((ms) => new Date(ms).toISOString());
    const proxy = await startProxy(
      made.standin.url,
      eachRecord((record, url) =>
        url.searchParams.get("group_by") === "project" &&
        record.time_bucket.startsWith(String(from).slice(0, 10))
          ? { ...record, time_bucket: misplace(record.time_bucket) }
          : record,
      ),
    );
    const env = { ...envOf(made), USAGE_BASE_URL: proxy.url };
    const args = ["backfill", "--inline", "--from", String(from), "--to", String(to)];
    // The first run learns that there are no hours, the second one knows.
    for (const _ of ["first", "second"]) {
      const ended = await run(args, env);
      expect(ended.code).toBe(3);
      expect(ended.stdout).toMatch(/^failed: project day .*\[bucket_misplaced\]$/m);
      // Once nothing is not available, that column is left out.
      expect(ended.stdout).toMatch(/^dimension .* failed( +not available)? *$/m);
      expect(ended.stdout).toMatch(/^project +day .* 1( +0)? *$/m);
    }
    expect(await made.sql("SELECT code FROM usage.failure")).toEqual([{ code: "bucket_misplaced" }]);
  });
});

test.each([
  ["--tier", "longlived", "fct_usage_workspace_by_tier_daily WHERE trace_tier = 'longlived' AND traces > 0"],
  ["--kind", "langsmith_deployments", "fct_deployment_usage_workspace_daily WHERE agent_runs > 0"],
] as const)(
  "usage that no sync wants is asked about before anything is said of it: %s %s",
  async (flag, name, facts) => {
    const deploymentStart = dayOf(Date.now() - 5 * DAY_MS);
    const made = await bench({ days: 5, standin: { contract: "day-granular", deploymentStart } });
    const env = { ...envOf(made), USAGE_KINDS: "traces", USAGE_TIERS: "all" };
    await run(["migrate"], env);
    const range = ["--from", dayOf(made.today - 3 * DAY_MS), "--to", dayOf(made.today)];
    const plan = async () => {
      const { code, stderr, stdout } = await run(["plan", ...range, flag, name], env);
      expect([code, stderr]).toEqual([
        0,
        expect.stringMatching(/is not known yet\. A backfill asks it first/),
      ]);
      expect(stdout).not.toContain("not_available");
    };
    await plan();
    // A sync learns of what it wants alone.
    if (flag === "--kind") {
      await run(["sync", "--inline"], env);
      await plan();
    }
    const loaded = await run(["backfill", "--inline", ...range, flag, name], env);
    expect([loaded.code, loaded.stdout]).toEqual([0, expect.stringContaining("All of it is loaded")]);
    const [row] = await made.sql<{ n: number }>(`SELECT count(*)::integer AS n FROM ${inSchema(facts)}`);
    expect(row?.n).toBeGreaterThan(0);

    const without = await bench({ days: 5, standin: { unknownParameters: "422" } });
    const refused = { ...envOf(without), USAGE_KINDS: "traces", USAGE_TIERS: "all" };
    await run(["migrate"], refused);
    const ended = await run(["backfill", "--inline", ...range, flag, name], refused);
    expect(ended.code).toBe(3);
    expect(ended.stderr).toMatch(/is not known to count .*, so nothing of that is loaded: it refuses it/);
    expect(ended.stdout).toContain("No usage was asked for.");
  },
);

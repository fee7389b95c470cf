import { describe, expect, test } from "vitest";
import { busyCell, BUSY_HOUR as HOUR, setup, sum } from "./setup.ts";

const DAY = { start: "2026-06-02", end: "2026-06-03" };

describe("usage that changes afterwards", () => {
  test("a late arrival shows in every dimension and in its hour", async () => {
    const { usage, admin, cell } = await busyCell();
    const before = sum(await usage(DAY));
    const change = await admin<{ before: number; after: number }>("POST", "/arrivals", {
      ...cell,
      traces: 40,
    });
    expect(change.after).toBe(change.before + 40);
    for (const by of ["workspace", "project", "user", "api_key"])
      expect(sum(await usage({ ...DAY, by }))).toBe(before + 40);
    const hour = { start: HOUR, end: "2026-06-02T11:00:00Z", by: "user" };
    const records = (await usage(hour)).usage.filter((r) => r.dimensions.user_id === cell.user_id);
    expect(records[0]?.traces).toBeGreaterThanOrEqual(change.after);
  });

  test("a restatement lowers a count, but never below 0", async () => {
    const { usage, admin, cell } = await busyCell();
    const before = sum(await usage(DAY));
    const change = await admin<{ before: number; after: number }>("POST", "/restatements", {
      ...cell,
      delta: -1e6,
    });
    expect(change.before).toBeGreaterThan(0);
    expect(change.after).toBe(0);
    expect(sum(await usage(DAY))).toBe(before - change.before);
    await admin("POST", "/restatements", { ...cell, delta: change.before });
    expect(sum(await usage(DAY))).toBe(before);
  });

  test("the export may differ from the JSON of the same days", async () => {
    const { usage, csv, admin, cell } = await busyCell();
    const ask = { start: "2026-06-01", end: "2026-06-08", by: "project" };
    const inCsv = async () => (await csv(ask)).reduce((total, row) => total + Number(row.Traces), 0);
    const before = sum(await usage(ask));
    expect(await inCsv()).toBe(before);
    await admin("POST", "/discrepancies", { ...cell, stride: "day", format: "csv", delta: 7 });
    expect([sum(await usage(ask)), await inCsv()]).toEqual([before, before + 7]);
  });

  test("the export of one tier or of one measure of deployments may differ too", async () => {
    const { standin, usage, csv, admin, cell } = await busyCell();
    standin.settings.contract = "day-granular";
    const [ran] = standin.organisation.deploymentStreams;
    const ofRun = {
      project_id: ran?.project.id,
      user_id: ran?.user?.id ?? null,
      api_key_short_key: ran?.key?.shortKey ?? null,
      hour: HOUR,
    };
    const wrong = { stride: "day", format: "csv", delta: 7 };
    await admin("POST", "/discrepancies", { ...cell, ...wrong, trace_tier: "longlived" });
    await admin("POST", "/discrepancies", { ...ofRun, ...wrong, measure: "nodes_executed" });
    const differs = async (more: Record<string, string>, measure: string, column: string) => {
      const answer = await usage({ ...DAY, by: "project", more });
      const lines = await csv({ ...DAY, by: "project", more });
      const right = answer.usage.reduce((all, record) => all + Number(record[measure]), 0);
      return lines.reduce((all, line) => all + Number(line[column]), 0) - right;
    };
    expect(await differs({}, "traces", "Traces")).toBe(0);
    expect(await differs({ trace_tier: "longlived" }, "traces", "Traces")).toBe(7);
    expect(await differs({ trace_tier: "shortlived" }, "traces", "Traces")).toBe(0);
    const deployments = { kind: "langsmith_deployments" };
    expect(await differs(deployments, "nodes_executed", "Nodes Executed")).toBe(7);
    expect(await differs(deployments, "agent_runs", "Agent Runs")).toBe(0);
  });

  test("an arrival in the future shows when the clock reaches its hour", async () => {
    const { usage, admin, cell } = await busyCell();
    await admin("POST", "/clock", { now: "2026-06-02T09:30:00Z" });
    const before = sum(await usage(DAY));
    await admin("POST", "/arrivals", { ...cell, traces: 1_000_000 });
    expect(sum(await usage(DAY))).toBe(before);
    await admin("POST", "/clock", { now: "2026-06-02T10:01:00Z" });
    expect(sum(await usage(DAY))).toBeGreaterThanOrEqual(before + 1_000_000);
  });

  test("an invalid change is refused with the field's name", async () => {
    const { standin, cell } = await busyCell();
    const refused = async (path: string, body: object) => {
      const response = await fetch(`${standin.url}/__standin${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const { detail } = (await response.json()) as { detail: { loc: string[] }[] | string };
      return [response.status, typeof detail === "string" ? detail.split(";")[0] : detail[0]?.loc];
    };
    const later = { ...cell, hour: "2026-01-04T23:00:00Z", traces: 1 };
    expect(await refused("/arrivals", later)).toEqual([422, ["body", "hour"]]);
    expect(await refused("/arrivals", { ...cell, traces: 0 })).toEqual([422, ["body", "traces"]]);
    expect(await refused("/arrivals", { ...cell, workspace_id: "x", traces: 1 })).toEqual([
      422,
      ["body", "workspace_id"],
    ]);
    expect(await refused("/arrivals", { ...cell, user_id: "x", traces: 1 })).toEqual([
      404,
      'stand-in: no user "x"',
    ]);
    expect(await refused("/clock", { now: "x" })).toEqual([422, expect.anything()]);
  });

  test("a dropped project is removed from every answer, its past too", async () => {
    const { usage, admin, project } = await busyCell();
    const answer = await usage({ ...DAY, by: "project" });
    const own = answer.usage.filter((r) => r.dimensions.project_id === project.id);
    await admin("PATCH", `/projects/${project.id}`, { dropped: true });
    expect(sum(await usage({ ...DAY, by: "user" }))).toBe(sum(answer) - sum({ ...answer, usage: own }));
    await admin("PATCH", `/projects/${project.id}`, { dropped: false });
    expect(await usage({ ...DAY, by: "project" })).toEqual(answer);
  });

  test("names change, ids do not", async () => {
    const { usage, admin, project, workspace, cell } = await busyCell();
    await admin("PATCH", `/projects/${project.id}`, { name: "new, project" });
    await admin("PATCH", `/workspaces/${workspace.id}`, { name: "new workspace" });
    await admin("PATCH", `/users/${cell.user_id}`, { email: null });
    const dimensions = async (by: string) => (await usage({ ...DAY, by })).usage.map((r) => r.dimensions);
    expect(await dimensions("project")).toContainEqual({
      project_id: project.id,
      project_name: "new, project",
    });
    expect(await dimensions("workspace")).toContainEqual({
      workspace_id: workspace.id,
      workspace_name: "new workspace",
    });
    expect(await dimensions("user")).toContainEqual({ user_id: cell.user_id, user_email: null });
  });
});

describe("the server itself", () => {
  test("settings and faults change while the server runs, and a reset restores its start", async () => {
    const { admin, get, usage, target, cell, standin } = await busyCell();
    const first = await usage(DAY);
    await admin("POST", "/arrivals", { ...cell, traces: 5 });
    await admin("PATCH", "/settings", { contract: "day-granular", align: "epoch", listing: false });
    await admin("POST", "/faults", {
      rates: { "500": 1 },
      script: [{ fault: { kind: "status", status: 429 }, times: 2 }],
    });
    expect(await admin("GET", "/faults")).toMatchObject({
      rates: { "500": 1 },
      script: [{ times: 2 }],
      fired: 0,
    });
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await get(target(DAY))).status);
    expect(statuses).toEqual([429, 429, 500]);
    await admin("DELETE", "/faults");
    expect((await get("/api/v1/workspaces")).status).toBe(404);
    expect((await usage(DAY)).usage[0]).toHaveProperty("agent_runs");
    expect(standin.requests.count).toBe(6);
    await admin("POST", "/reset", {});
    expect(standin.requests.count).toBe(0);
    expect(await usage(DAY)).toEqual(first);
    await admin("POST", "/reset", { seed: 9 });
    expect(standin.organisation.workspaces.map(({ id }) => id)).not.toContain(cell.workspace_id);
  });

  test("the server shows its state and the requests it got", async () => {
    const { admin, get } = await setup();
    const shown = await admin<{ workspaces: unknown[]; streams: unknown[]; now: string }>(
      "GET",
      "/organisation",
    );
    expect(shown.workspaces).toHaveLength(6);
    expect(shown.streams[0]).toHaveProperty("api_key_short_key");
    expect(shown.now).toBe("2026-09-16T13:25:00.000Z");
    await get("/nowhere");
    expect(await admin("GET", "/requests")).toEqual({
      count: 1,
      recent: [{ method: "GET", url: "/nowhere", status: 404, fault: null }],
    });
  });
});

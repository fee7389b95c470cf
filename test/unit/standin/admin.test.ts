import { describe, expect, test } from "vitest";
import { busyCell, setup, sum } from "./setup.ts";

const DAY = { start: "2026-06-02", end: "2026-06-03" };

describe("usage that changes afterwards", () => {
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

import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { now } from "../support/clock.ts";
import { eachRecord, startProxy } from "../support/proxy.ts";
import { setup } from "../support/source.ts";
import { booked, differences, dump, inStore, wrongFigures } from "../support/tables.ts";

const everything = { hourDays: 1 };
const usage = { path: "/granular-usage" };

describe("one bad record", () => {
  test("costs one bucket, is recorded with the time of the next attempt, and heals", async () => {
    const bench = await setup({ workspaces: [0, 1], hourlyForMs: DAY_MS });
    const bad = new Date(bench.dataStart + 2 * DAY_MS).toISOString().replace(".000Z", "Z");
    const project = bench.standin.organisation.projects[2];
    const proxy = await startProxy(
      bench.standin.url,
      eachRecord((record) =>
        record.dimensions.project_id === project?.id && record.time_bucket === bad
          ? { ...record, traces: -1 }
          : record,
      ),
    );
    const { run } = await bench.sync({ baseUrl: proxy.url });
    expect(run.failures.map(({ code }) => code)).toEqual(["response_invalid"]);
    expect(run.failures[0]?.message).toContain("traces = -1");

    const lost = new Map(
      [...booked(bench, everything)].filter(([key]) => {
        const [groupBy, stride, at, workspace] = key.split(" ");
        const isIt = groupBy === "project" && stride === "day" && workspace === project?.workspace.id;
        return isIt && Date.parse(at ?? "") === Date.parse(bad);
      }),
    );
    expect(lost.size).toBeGreaterThan(0);
    const rest = new Map([...booked(bench, everything)].filter(([key]) => !lost.has(key)));
    expect(differences(await inStore(bench), rest)).toEqual([]);

    const failures = await bench.sql<{ from: Date; to: Date; minutes: number; status: string }>(
      `SELECT period_start AS from, period_end AS to, extract(epoch FROM retry_at - failed_at)::integer / 60 AS minutes
       FROM usage.failure`,
    );
    expect(
      failures.map(({ from, to, minutes }) => [from.toISOString(), to.getTime() - from.getTime(), minutes]),
    ).toEqual([[new Date(bad).toISOString(), DAY_MS, 60]]);
    const shown = await bench.sql<{ coverage_status: string; traces: null }>(
      `SELECT coverage_status, traces FROM reporting.fct_usage_project_daily
       WHERE usage_date = $1::date AND workspace_id = $2`,
      [bad.slice(0, 10), project?.workspace.id],
    );
    expect(shown).toEqual([{ coverage_status: "failed", traces: null }]);

    const requested = () => proxy.seen.filter((url) => url.searchParams.get("start_time") === bad).length;
    const before = requested();
    await bench.sync({ baseUrl: proxy.url });
    expect(requested()).toBe(before);
    await bench.passTime();
    await bench.sync({ baseUrl: proxy.url });
    const [again] = await bench.sql<{ attempts: number; minutes: number }>(
      "SELECT attempts, extract(epoch FROM retry_at - failed_at)::integer / 60 AS minutes FROM usage.failure",
    );
    expect(again).toEqual({ attempts: 2, minutes: 120 });
    proxy.rewrite = () => undefined;
    await bench.passTime();
    await bench.sync({ baseUrl: proxy.url });
    expect((await dump(bench)).failures).toEqual([]);
    expect(await wrongFigures(bench, everything)).toEqual([]);
    expect((await dump(bench)).restatements).toEqual([]);
  });

  test("a workspace that the platform cannot respond for does not affect the others", async () => {
    const bench = await setup({ workspaces: [0, 1, 2], hourlyForMs: 0 });
    const [, chokes = ""] = bench.workspaceIds;
    bench.standin.faults.script({
      fault: { kind: "status", status: 422 },
      times: 10_000,
      match: { ...usage, query: { group_by: "workspace", workspace_ids: chokes } },
    });
    const { run } = await bench.sync();
    expect(new Set(run.failures.flatMap(({ task }) => task.members.map((one) => one.workspaceId)))).toEqual(
      new Set([chokes]),
    );
    const book = [...booked(bench)].filter(
      ([key]) => !(key.startsWith("workspace ") && key.includes(chokes)),
    );
    expect(differences(await inStore(bench, ["day"]), new Map(book))).toEqual([]);
  });
});

test("a server that refuses every request is not asked for each bucket separately", async () => {
  const bench = await setup({ days: 300, workspaces: [0, 1, 2], hourlyForMs: 31 * DAY_MS });
  const source = await bench.open();
  bench.standin.faults.script({ fault: { kind: "status", status: 400 }, times: 100_000, match: usage });
  const { planned, requests } = await bench.sync();
  expect(requests).toBeLessThan(planned + 150);
  expect(source.workspaceIds).toHaveLength(3);
  expect(await inStore(bench)).toEqual(new Map());
});

describe("a refused key", () => {
  test.each([
    [401, { kind: "status", status: 401 }],
    [403, { kind: "status", status: 403 }],
    [403, { kind: "status", status: 403, content_type: "text/html", body: "<html>Forbidden</html>" }],
  ] as const)(
    "responded with %i stops the source at once and is recorded; a good key clears it",
    async (status, fault) => {
      const bench = await setup({ workspaces: [0, 1], hourlyForMs: 3 * DAY_MS });
      bench.standin.faults.script({ fault, times: 1000, skip: 5, match: usage });
      const before = bench.standin.requests.count;
      await expect(bench.sync()).rejects.toMatchObject({ status });
      expect(bench.standin.requests.count - before).toBeLessThanOrEqual(2 + 5 + 4);
      const refused = () =>
        bench.sql<{ refused_code: string | null }>("SELECT refused_code FROM usage.source");
      expect(await refused()).toEqual([{ refused_code: status === 401 ? "unauthorized" : "forbidden" }]);
      const stored = await inStore(bench);
      expect(stored.size).toBeGreaterThan(0);
      expect((await dump(bench)).failures).toEqual([]);

      bench.standin.faults.clear();
      await bench.sync();
      expect(await refused()).toEqual([{ refused_code: null }]);
      expect(await wrongFigures(bench, { hourDays: 3 })).toEqual([]);
    },
  );

  test("that was revoked is reported at first contact", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    bench.standin.access.revoked = true;
    await expect(bench.open()).rejects.toMatchObject({ status: 401 });
    expect(bench.waits).toEqual([]);
  });
});

describe("a sync that the platform or the caller interrupts", () => {
  test("ends the sync after three failed tasks, and nothing is lost", async () => {
    const bench = await setup({ workspaces: [0, 1], hourlyForMs: 4 * DAY_MS });
    bench.standin.faults.script({ fault: { kind: "reset" }, times: 100_000, skip: 8, match: usage });
    const before = bench.standin.requests.count;
    await expect(bench.sync()).rejects.toMatchObject({ code: "platform_unreachable" });
    expect(bench.standin.requests.count - before).toBeLessThanOrEqual(2 + 8 + (6 + 2) * 8);
    const stored = await inStore(bench);
    expect(stored.size).toBeGreaterThan(0);

    bench.standin.faults.clear();
    await bench.sync();
    await bench.passTime();
    await bench.sync();
    expect((await dump(bench)).failures).toEqual([]);
    expect(await wrongFigures(bench, { hourDays: 4 })).toEqual([]);
  });

  test("keeps what was loaded before an abort, and no part of a window", async () => {
    const bench = await setup({ workspaces: [0, 1] });
    const abort = new AbortController();
    const source = await bench.open({ signal: abort.signal });
    bench.standin.faults.script({ fault: { kind: "hang" }, times: 100, skip: 4, match: usage });
    const { planSource, routineDemand } = await import("../../src/core/pipeline/sync/plan.ts");
    const { runInline } = await import("../../src/core/pipeline/extract/run-inline.ts");
    const tasks = await planSource(source, { wanted: routineDemand(source, now()), reprocess: "missing" });
    const reason = new Error("enough");
    const onProgress = ({ done }: { done: number }) => {
      if (done === 4) abort.abort(reason);
    };
    const run = runInline(source, tasks, { onProgress });
    await expect(run).rejects.toBe(reason);
    bench.standin.faults.clear();
    await bench.sync();
    expect(await wrongFigures(bench, everything)).toEqual([]);
    expect((await dump(bench)).failures).toEqual([]);
  });
});

test.each([
  ["are requested in parts, down to one bucket, which may have more", true, 3],
  ["are taken at once where nothing may be split any more", false, 1],
])("more ids than memory is meant for %s", async (_, maySplit, requests) => {
  const bench = await setup({ workspaces: [0], days: 2 });
  const many = 100_001;
  const proxy = await startProxy(bench.standin.url, ({ url, text }) => {
    if (url.searchParams.get("group_by") !== "user") return undefined;
    const [start, end] = ["start_time", "end_time"].map((name) =>
      Date.parse(url.searchParams.get(name) ?? ""),
    ) as [number, number];
    const usage = [start, ...(end - start > DAY_MS ? [start + DAY_MS] : [])].flatMap((day) =>
      Array.from({ length: day === bench.dataStart ? many : 1 }, (_, i) => ({
        time_bucket: new Date(day).toISOString(),
        dimensions: { workspace_id: bench.workspaceIds[0], user_id: `user ${i}` },
        traces: 1,
      })),
    );
    return JSON.stringify({ ...JSON.parse(text), usage });
  });
  const range = { start: bench.dataStart, end: bench.dataStart + 2 * DAY_MS };
  const { run } = await bench.fetch(
    { wanted: [{ stride: "day", range }], groupings: ["user"], reprocess: "missing" },
    {
      baseUrl: proxy.url,
      opened: ({ splitLimit }) => {
        while (!maySplit && splitLimit.allows()) splitLimit.refused();
      },
    },
  );
  expect(run.failures).toEqual([]);
  const requested = proxy.seen.filter((url) => url.searchParams.get("group_by") === "user");
  expect(requested).toHaveLength(requests);
  expect(
    await bench.sql(
      "SELECT bucket_start = $1::date AS first, count(*)::integer AS records FROM usage.dated_record GROUP BY 1 ORDER BY 1",
      [new Date(bench.dataStart).toISOString()],
    ),
  ).toEqual([
    { first: false, records: 1 },
    { first: true, records: many },
  ]);
});

test("one bucket with more ids than are read is refused and kept as a failure, and heals", async () => {
  const bench = await setup({ workspaces: [0], days: 2 });
  let many = 250_001;
  const proxy = await startProxy(bench.standin.url, ({ url, text }) => {
    if (url.searchParams.get("group_by") !== "user") return undefined;
    const usage = Array.from({ length: many }, (_, i) => ({
      time_bucket: url.searchParams.get("start_time"),
      dimensions: { workspace_id: bench.workspaceIds[0], user_id: `user ${i}` },
      traces: 1,
    }));
    return JSON.stringify({ ...JSON.parse(text), usage });
  });
  const range = { start: bench.dataStart, end: bench.dataStart + DAY_MS };
  const fetchDay = () =>
    bench.fetch(
      { wanted: [{ stride: "day", range }], groupings: ["user"], reprocess: "missing" },
      { baseUrl: proxy.url },
    );
  const { run } = await fetchDay();
  expect(run.failures.map(({ code }) => code)).toEqual(["ids_too_many"]);
  expect(proxy.seen.filter((url) => url.searchParams.get("group_by") === "user")).toHaveLength(1);
  expect(await inStore(bench)).toEqual(new Map());
  many = 3;
  await bench.passTime();
  expect((await fetchDay()).run.failures).toEqual([]);
  expect((await dump(bench)).failures).toEqual([]);
  expect((await inStore(bench)).size).toBe(3);
});

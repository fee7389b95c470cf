import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SandboxHour } from "../../../src/local/standin/engine/sandboxes.ts";
import type { StandinOptions } from "../../../src/local/standin/server.ts";
import { NOW, SEED, setup } from "./setup.ts";

const PATH = "/api/v2/sandboxes/usage/costs";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const WEEK = { start_time: "2026-06-01T00:00:00Z", end_time: "2026-06-08T00:00:00Z" };
const BY_RESOURCE = { granularity: "RESOURCE" };

interface Item {
  resource_id: string;
  resource_type: string;
  period_start: string;
  lcu: string;
  lsu: string;
  [field: string]: unknown;
}
interface Page {
  items: Item[];
  next_cursor: string | null;
}
type Query = Record<string, string | readonly string[]>;

async function bench(options: StandinOptions = {}) {
  const { standin, get, admin } = await setup({ sandboxes: "on", ...options });
  const { organisation, sandboxLedger } = standin;
  const [workspace] = organisation.workspaces;
  const workspaceId = workspace?.id ?? "";
  const ask = (query: Query, headers: Record<string, string> = {}) => {
    const sent = new URLSearchParams();
    for (const [name, values] of Object.entries(query))
      for (const value of [values].flat()) sent.append(name, value);
    return get(`${PATH}?${sent}`, { "x-tenant-id": workspaceId, ...headers });
  };
  const page = async (query: Query = WEEK, headers?: Record<string, string>): Promise<Page> => {
    const response = await ask(query, headers);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as Page;
  };
  const pages = async (query: Query = WEEK, most = 1000): Promise<Page[]> => {
    const all = [await page(query)];
    for (let next = all[0]?.next_cursor; next && all.length < most; next = all.at(-1)?.next_cursor)
      all.push(await page({ ...query, cursor: next }));
    return all;
  };
  const items = async (query?: Query) => (await pages(query)).flatMap((one) => one.items);
  const refused = async (query: Query, headers?: Record<string, string>) => {
    const response = await ask(query, headers);
    const { detail } = (await response.json()) as { detail?: string | { loc: string[] }[] };
    return [response.status, Array.isArray(detail) ? detail[0]?.loc.slice(0, 2) : detail];
  };
  const own = { organisation, workspaceId, ledger: sandboxLedger };
  return { standin, admin, ask, page, pages, items, refused, ...own };
}

const query = (start: number, end: number, more: Query = {}): Query => ({
  start_time: new Date(start).toISOString(),
  end_time: new Date(end).toISOString(),
  page_size: "1000",
  ...more,
});

/** As the wire has it, to whole millionths. */
function millionths(text: string): number {
  expect(text).toMatch(/^(0|[1-9]\d*)(\.\d{0,5}[1-9])?$/);
  const [whole, digits = ""] = text.split(".");
  return Number(whole) * 1_000_000 + Number(digits.padEnd(6, "0"));
}

function sumsOf(items: readonly Item[]): Record<string, [number, number]> {
  const sums: Record<string, [number, number]> = {};
  for (const { resource_id: id, lcu, lsu } of items) {
    const [ofLcu, ofLsu] = sums[id] ?? [0, 0];
    sums[id] = [ofLcu + millionths(lcu), ofLsu + millionths(lsu)];
  }
  return sums;
}

const asRows = (items: readonly Item[]) =>
  items.map((item) => [
    item.resource_id,
    item.resource_type,
    Date.parse(item.period_start),
    millionths(item.lcu),
    millionths(item.lsu),
  ]);
const ofLedger = (hours: readonly SandboxHour[]) =>
  hours.map(({ resourceId, resourceType, hour, lcu, lsu }) => [resourceId, resourceType, hour, lcu, lsu]);

describe("sandbox costs", () => {
  test("pages of every size give the hours of the ledger, each once", async () => {
    const { pages, ledger, workspaceId } = await bench();
    const range = { start: Date.parse(WEEK.start_time), end: Date.parse(WEEK.end_time) };
    const expected = ofLedger(ledger.hours({ workspaceId, ...range }));
    expect(expected.length).toBeGreaterThan(200);
    for (const size of [7, 100, expected.length - 1, expected.length, expected.length + 1, 1000]) {
      const all = await pages({ ...WEEK, page_size: String(size) });
      expect(all).toHaveLength(Math.ceil(expected.length / size));
      expect(all.slice(0, -1).every(({ items }) => items.length === size)).toBe(true);
      expect(asRows(all.flatMap(({ items }) => items))).toEqual(expected);
    }
    expect((await pages())[0]?.items).toHaveLength(100);
  });

  test("an item has these fields, and further ones that are not available", async () => {
    const { items, organisation } = await bench();
    const always = ["resource_id", "resource_type", "period_start", "lcu", "lsu"];
    const none = ["compute_standard_units", "storage_standard_units"];
    const [hour] = await items();
    expect(Object.keys(hour ?? {})).toEqual([...always, ...none]);
    expect(hour?.period_start).toBe(WEEK.start_time);
    const [sum] = await items({ ...WEEK, ...BY_RESOURCE });
    const more = ["vcpu_hours", "memory_gib_hours", "storage_gib_hours"];
    expect(Object.keys(sum ?? {})).toEqual([...always, ...none, ...more]);
    expect([...none, ...more].map((name) => sum?.[name])).toEqual([null, null, null, null, null]);
    expect(organisation.sandboxes.map(({ id }) => id)).toContain(sum?.resource_id);
  });

  test("snapshots compute nothing, and every hour with an item has an amount", async () => {
    const { items } = await bench();
    const snapshots = await items({ ...WEEK, resource_type: "SNAPSHOT" });
    const others = await items({ ...WEEK, resource_type: "SANDBOX" });
    expect(new Set(snapshots.map(({ lcu }) => lcu))).toEqual(new Set(["0"]));
    expect(new Set(others.map((one) => one.resource_type))).toEqual(new Set(["SANDBOX"]));
    expect(snapshots.length + others.length).toBe((await items()).length);
    for (const { lcu, lsu } of [...snapshots, ...others])
      expect(millionths(lcu) + millionths(lsu)).toBeGreaterThan(0);
  });

  test("up to 100 resources can be named; one of another workspace is left out", async () => {
    const { items, organisation, workspaceId, refused } = await bench();
    const own = organisation.sandboxes.filter(({ workspace }) => workspace.id === workspaceId);
    const other = organisation.sandboxes.find(({ workspace }) => workspace.id !== workspaceId);
    const named = own.slice(0, 2).map(({ id }) => id);
    const all = await items();
    const some = await items({ ...WEEK, resource_ids: [...named, other?.id ?? ""] });
    expect(some).toEqual(all.filter((one) => named.includes(one.resource_id)));
    const many = Array.from({ length: 101 }, () => own[0]?.id ?? "");
    await items({ ...WEEK, resource_ids: many.slice(1) });
    expect(await refused({ ...WEEK, resource_ids: many })).toEqual([422, ["query", "resource_ids"]]);
  });

  test("each workspace has its own, without the header the first one, and the empty one none", async () => {
    const { page, organisation, ask, refused } = await bench();
    const ids = organisation.workspaces.map(({ id }) => id);
    for (const { id } of organisation.workspaces.slice(0, 5)) {
      const { items } = await page({ ...WEEK, ...BY_RESOURCE }, { "x-tenant-id": id });
      const own = organisation.sandboxes.filter(({ workspace }) => workspace.id === id);
      for (const item of items) expect(own.map((one) => one.id)).toContain(item.resource_id);
      expect(items.length > 0).toBe(id !== ids[4]);
    }
    const unreadable = await ask(WEEK, { "x-tenant-id": `${ids[5]}` });
    expect([unreadable.status, await unreadable.json()]).toEqual([403, { error: "Forbidden" }]);
    expect(await refused(WEEK, { "x-api-key": "wrong" })).toEqual([401, "Invalid token"]);
    const { get, standin } = await setup({ sandboxes: "on" });
    const target = `${PATH}?${new URLSearchParams(WEEK)}`;
    expect(await (await get(target)).json()).toEqual(await page());
    standin.access.organizationScoped = true;
    expect((await get(target)).status).toBe(403);
  });

  test("a server that has no such route answers 404", async () => {
    const { standin, ask, page } = await bench({ sandboxes: "off" });
    expect((await ask(WEEK)).status).toBe(404);
    standin.settings.sandboxes = "on";
    expect((await page()).items).toHaveLength(100);
    expect((await setup()).standin.settings.sandboxes).toBe("off");
  });

  test("the other history is the same with sandboxes and without", async () => {
    const [on, off] = [await setup({ sandboxes: "on" }), await setup()];
    const month = { start: "2026-06-01", end: "2026-07-01", by: "project" };
    expect(await on.usage(month)).toEqual(await off.usage(month));
  });
});

describe("what is refused", () => {
  test.each([
    [{ start_time: "x" }, "start_time"],
    [{ end_time: "x" }, "end_time"],
    [{ end_time: WEEK.start_time }, "end_time"],
    [{ end_time: "2026-05-31T00:00:00Z" }, "end_time"],
    [{ end_time: "2026-07-02T00:00:01Z" }, "end_time"],
    [{ granularity: "DAY" }, "granularity"],
    [{ page_size: "0" }, "page_size"],
    [{ page_size: "1001" }, "page_size"],
    [{ page_size: "1.5" }, "page_size"],
    [{ page_size: ["5", "6"] }, "page_size"],
    [{ resource_ids: "x" }, "resource_ids"],
    [{ resource_type: "sandbox" }, "resource_type"],
    [{ group_by: "workspace" }, "group_by"],
  ] as [Query, string][])("%j is 422", async (given, name) => {
    const { refused } = await bench();
    expect(await refused({ ...WEEK, ...given })).toEqual([422, ["query", name]]);
  });

  test("a range needs both ends, and may have 31 days", async () => {
    const { refused, ask } = await bench();
    expect(await refused({ end_time: WEEK.end_time })).toEqual([422, ["query", "start_time"]]);
    expect(await refused({ start_time: WEEK.start_time })).toEqual([422, ["query", "end_time"]]);
    expect((await ask({ ...WEEK, end_time: "2026-07-02T00:00:00Z" })).status).toBe(200);
  });

  test("a cursor fits its query alone", async () => {
    const { page, refused, organisation, standin } = await bench();
    const cursor = (await page()).next_cursor ?? "";
    expect(cursor).not.toBe("");
    expect((await page({ ...WEEK, cursor })).items).toHaveLength(100);
    // What is written out is the same query as the default.
    expect((await page({ ...WEEK, cursor, page_size: "100", granularity: "HOUR" })).items).toHaveLength(100);
    const invalid = [400, "Invalid cursor"];
    for (const other of [
      { page_size: "99" },
      { end_time: "2026-06-09T00:00:00Z" },
      { resource_type: "SANDBOX" },
      BY_RESOURCE,
    ])
      expect(await refused({ ...WEEK, ...other, cursor })).toEqual(invalid);
    for (const none of ["", "x", Buffer.from("{}").toString("base64url"), cursor.slice(0, -3)])
      expect(await refused({ ...WEEK, cursor: none })).toEqual(invalid);
    const another = { "x-tenant-id": organisation.workspaces[1]?.id ?? "" };
    expect(await refused({ ...WEEK, cursor }, another)).toEqual(invalid);
    standin.reset(9);
    expect(await refused({ ...WEEK, cursor }, { "x-tenant-id": "" })).toEqual([403, undefined]);
  });
});

describe("usage that changes afterwards", () => {
  const at = Date.parse("2026-06-02T10:00:00Z");

  test("a row changes late, never below 0, and a snapshot computes nothing still", async () => {
    const { ledger, organisation, workspaceId, items, admin } = await bench();
    const own = organisation.sandboxes.filter(({ workspace }) => workspace.id === workspaceId);
    const { id = "" } = own.find(({ type }) => type === "SANDBOX") ?? {};
    const inHour = async () => {
      const [item] = await items(query(at, at + HOUR, { resource_ids: id }));
      return [millionths(item?.lcu ?? "0"), millionths(item?.lsu ?? "0")];
    };
    const [lcu = 0, lsu = 0] = await inHour();
    const change = { resource_id: id, hour: "2026-06-02T10:59:00Z", measure: "lcu" };
    expect(await admin("POST", "/sandbox-usage", { ...change, delta: 1_000_001 })).toEqual({
      before: lcu,
      after: lcu + 1_000_001,
    });
    expect(await inHour()).toEqual([lcu + 1_000_001, lsu]);
    expect(ledger.change({ resourceId: id, at, measure: "lsu", delta: -1e9 }).after).toBe(0);
    expect(ledger.change({ resourceId: id, at, measure: "lcu", delta: -1e9 }).after).toBe(0);
    expect(await items(query(at, at + HOUR, { resource_ids: id }))).toEqual([]);
    const resourceId = own.find(({ type }) => type === "SNAPSHOT")?.id ?? "";
    expect(ledger.change({ resourceId, at, measure: "lcu", delta: 5 })).toEqual({ before: 0, after: 0 });
    const early = { resourceId: id, measure: "lcu", delta: 1 } as const;
    expect(() => ledger.change({ ...early, at: ledger.start - 1 })).toThrow("before the data start");
    expect(() => ledger.change({ ...early, at, delta: 0.5 })).toThrow("not a whole number");
    expect(() => ledger.change({ ...early, resourceId: "x", at })).toThrow("no sandbox");
  });

  test("nothing is shown before the start or in the future; the hour under way is", async () => {
    const { ledger, items, organisation, standin } = await bench();
    const { start } = ledger;
    expect(start).toBe(Date.parse("2025-12-01"));
    expect(await items(query(start - 31 * DAY, start))).toEqual([]);
    expect((await items(query(start - DAY, start + DAY)))[0]?.period_start).toBe("2025-12-01T00:00:00Z");
    const today = await items(query(NOW - DAY, NOW + DAY));
    expect(today.at(-1)?.period_start).toBe("2026-09-16T13:00:00Z");
    const resourceId = organisation.sandboxes[0]?.id ?? "";
    const later = { resourceId, at: NOW + HOUR, measure: "lcu", delta: 9e9 } as const;
    expect(ledger.change(later)).toEqual({ before: 0, after: 0 });
    expect(await items(query(NOW - DAY, NOW + DAY))).toEqual(today);
    standin.setClock({ advance: HOUR });
    const shown = await items(query(NOW, NOW + DAY, { resource_ids: resourceId }));
    expect(Number(shown[0]?.lcu)).toBeGreaterThanOrEqual(9000);
  });

  test("a dropped resource leaves every answer, its past too", async () => {
    const { items, admin, ledger, organisation } = await bench();
    const all = await items();
    const id = all[0]?.resource_id ?? "";
    const shown = await admin<{ sandboxes: { id: string; workspace_id: string }[] }>("GET", "/organisation");
    expect(shown.sandboxes).toHaveLength(organisation.sandboxes.length);
    expect(shown.sandboxes.find((one) => one.id === id)).toMatchObject({ dropped: false });
    await admin("PATCH", `/sandboxes/${id}`, { dropped: true });
    expect(await items()).toEqual(all.filter((one) => one.resource_id !== id));
    expect(Object.keys(sumsOf(await items({ ...WEEK, ...BY_RESOURCE })))).not.toContain(id);
    expect(ledger.hours({ start: 0, end: NOW }).some(({ resourceId }) => resourceId === id)).toBe(false);
    await admin("PATCH", `/sandboxes/${id}`, { dropped: false });
    expect(await items()).toEqual(all);
  });

  test("a deleted workspace keeps its past and gets nothing new", async () => {
    const { items, admin, workspaceId } = await bench();
    await admin("POST", "/clock", { now: "2026-06-04T12:00:00Z" });
    const past = await items();
    await admin("PATCH", `/workspaces/${workspaceId}`, { deleted: true });
    await admin("POST", "/clock", { advance_seconds: 5 * 86_400 });
    expect(past.length).toBeGreaterThan(0);
    expect(await items()).toEqual(past);
  });

  test("sums can contradict the hours, until a reset", async () => {
    const { items, standin, ledger, workspaceId } = await bench();
    const byResource = { ...WEEK, ...BY_RESOURCE };
    const [sums, hours] = [await items(byResource), await items()];
    const resourceId = sums[0]?.resource_id ?? "";
    ledger.contradictions.push({ resourceId, at, measure: "lsu", delta: 70 });
    const [lcu = 0, lsu = 0] = sumsOf(sums)[resourceId] ?? [];
    const changed = { ...sumsOf(sums), [resourceId]: [lcu, lsu + 70] };
    expect(sumsOf(await items(byResource))).toEqual(changed);
    expect(await items()).toEqual(hours);
    const before = query(Date.parse(WEEK.start_time), at, BY_RESOURCE);
    const range = { start: Date.parse(WEEK.start_time), end: at };
    const expected = ledger.hours({ workspaceId, ...range }).filter((one) => one.resourceId === resourceId);
    expect(sumsOf(await items(before))[resourceId]?.[1]).toBe(
      expected.reduce((all, one) => all + one.lsu, 0),
    );
    standin.reset();
    expect(await items(byResource)).toEqual(sums);
  });
});

describe(`sandbox costs are conserved (SEED=${SEED})`, () => {
  const runs = { numRuns: 40, seed: SEED };
  /** Up to 31 days, on any second: off the hour, before the data, in the future. */
  const range = fc
    .record({
      start: fc.integer({ min: Date.parse("2025-11-15") / 1000, max: NOW / 1000 }),
      length: fc.oneof(
        fc.integer({ min: 1, max: (2 * DAY) / 1000 }),
        fc.integer({ min: 1, max: (31 * DAY) / 1000 }),
      ),
    })
    .map(({ start, length }) => ({ start: start * 1000, end: (start + length) * 1000 }));

  test("the hours of a range are those of the ledger, and its sums are sums of them", async () => {
    const { items, ledger, workspaceId } = await bench({ seed: SEED });
    await fc.assert(
      fc.asyncProperty(range, async ({ start, end }) => {
        const hours = await items(query(start, end));
        const sums = await items(query(start, end, BY_RESOURCE));
        expect(asRows(hours)).toEqual(ofLedger(ledger.hours({ workspaceId, start, end })));
        expect(sumsOf(sums)).toEqual(sumsOf(hours));
        expect(sums.every((one) => Date.parse(one.period_start) === start)).toBe(true);
        expect(new Set(sums.map((one) => one.resource_id)).size).toBe(sums.length);
      }),
      runs,
    );
  });

  test("ranges that adjoin hold everything once, by hour and by resource", async () => {
    const { items } = await bench({ seed: SEED });
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(range, cuts, async ({ start, end }, shares) => {
        const inner = shares.map((share) => start + Math.floor(((end - start) * share) / 1000) * 1000);
        const edges = [...new Set([start, ...inner, end])].sort((a, b) => a - b);
        const parts = async (more: Query) => {
          const answers = [];
          for (const [i, to] of edges.slice(1).entries())
            answers.push(...(await items(query(edges[i] ?? 0, to, more))));
          return answers;
        };
        const hours = await items(query(start, end));
        expect(await parts({})).toEqual(hours);
        expect(sumsOf(await parts(BY_RESOURCE))).toEqual(sumsOf(hours));
      }),
      runs,
    );
  });

  test("each seed and scale gives resources of its own, some of which begin or end in the year", async () => {
    const { organisation, ledger } = await bench({ seed: SEED });
    const hours = ledger.hours({ start: 0, end: NOW });
    expect(await bench({ seed: SEED }).then((same) => same.ledger.hours({ start: 0, end: NOW }))).toEqual(
      hours,
    );
    const other = await bench({ seed: SEED + 1, scale: 3 });
    const ids = organisation.sandboxes.map(({ id }) => id);
    expect(other.organisation.sandboxes.some(({ id }) => ids.includes(id))).toBe(false);
    expect(other.organisation.sandboxes.length).toBeGreaterThan(ids.length);
    for (const { id } of organisation.workspaces) {
      const own = organisation.sandboxes.filter(({ workspace }) => workspace.id === id);
      const isEmpty = !organisation.projects.some(({ workspace }) => workspace.id === id);
      expect(own.filter(({ type }) => type === "SNAPSHOT")).toHaveLength(isEmpty ? 0 : 1);
      expect(own.length).toBeGreaterThanOrEqual(isEmpty ? 0 : 3);
      expect(own.length).toBeLessThanOrEqual(isEmpty ? 0 : 6);
    }
    const { sandboxes } = other.organisation;
    expect(sandboxes.some(({ begins }) => begins > 0)).toBe(true);
    expect(sandboxes.some(({ ends }) => ends < Number.POSITIVE_INFINITY)).toBe(true);
  });
});

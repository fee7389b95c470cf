import { describe, expect, test } from "vitest";
import type { StandinOptions } from "../../../src/local/standin/server.ts";
import { NOW, setup } from "./setup.ts";

const PATH = "/api/v2/sandboxes/usage/costs";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const WEEK = { start_time: "2026-06-01T00:00:00Z", end_time: "2026-06-08T00:00:00Z" };

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
  const { standin, get } = await setup({ sandboxes: "on", ...options });
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
  return { standin, ask, page, pages, items, refused, ...own };
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

describe("usage that changes afterwards", () => {
  const at = Date.parse("2026-06-02T10:00:00Z");

  test("a row changes late, never below 0, and a snapshot computes nothing still", async () => {
    const { ledger, organisation, workspaceId, items } = await bench();
    const own = organisation.sandboxes.filter(({ workspace }) => workspace.id === workspaceId);
    const { id = "" } = own.find(({ type }) => type === "SANDBOX") ?? {};
    const inHour = async () => {
      const [item] = await items(query(at, at + HOUR, { resource_ids: id }));
      return [millionths(item?.lcu ?? "0"), millionths(item?.lsu ?? "0")];
    };
    const [lcu = 0, lsu = 0] = await inHour();
    const change = { resourceId: id, at: at + HOUR - 60_000, measure: "lcu", delta: 1_000_001 } as const;
    expect(ledger.change(change)).toEqual({ before: lcu, after: lcu + 1_000_001 });
    expect(await inHour()).toEqual([lcu + 1_000_001, lsu]);
    expect(ledger.change({ resourceId: id, at, measure: "lsu", delta: -1e9 }).after).toBe(0);
    expect(ledger.change({ resourceId: id, at, measure: "lcu", delta: -1e9 }).after).toBe(0);
    expect(await items(query(at, at + HOUR, { resource_ids: id }))).toEqual([]);
    const resourceId = own.find(({ type }) => type === "SNAPSHOT")?.id ?? "";
    expect(ledger.change({ resourceId, at, measure: "lcu", delta: 5 })).toEqual({ before: 0, after: 0 });
    const early = { resourceId: id, measure: "lcu", delta: 1 } as const;
    expect(() => ledger.change({ ...early, at: Date.parse("2025-12-01") - 1 })).toThrow(
      "before the data start",
    );
    expect(() => ledger.change({ ...early, at, delta: 0.5 })).toThrow("not a whole number");
    expect(() => ledger.change({ ...early, resourceId: "x", at })).toThrow("no sandbox");
  });

  test("nothing is shown before the start or in the future; the hour under way is", async () => {
    const { ledger, items, organisation, standin } = await bench();
    const start = Date.parse("2025-12-01");
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
});

import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import { type Bench, setup } from "../../../support/source.ts";

const PATH = "/api/v1/audit-logs";
const setupLog = (options: Parameters<typeof setup>[0] = {}) =>
  setup({ days: 3, workspaces: [0], ...options, standin: { auditLog: "on", ...options.standin } });
const read = async (bench: Bench, isPatient = false) =>
  readBill(await bench.open(), { reach: "month", isPatient });
const kept = (bench: Bench) =>
  bench.sql<{
    operation: string;
    at: string;
    workspace: string | null;
    user_id: string | null;
    is_certain: boolean;
  }>(
    `SELECT operation, (extract(epoch FROM changed_at) * 1000)::bigint::text AS at, workspace, user_id, is_certain
     FROM usage.logged_change ORDER BY changed_at, operation`,
  );
const requests = ({ standin }: Bench) => standin.requests.recent.filter(({ url }) => url.startsWith(PATH));
const USER = "00000000-0000-4000-8000-0000000000f1";

function change(bench: Bench, operation: string, at: number, more: object = {}) {
  const one = { at, operation, workspaceId: null, userId: USER, succeeded: true, ...more };
  bench.standin.bill.changes.push(one);
  return { operation, at: `${at}`, workspace: one.workspaceId, user_id: USER, is_certain: true };
}

function respond({ standin }: Bench, body: unknown, { status = 200, times = 1 } = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  standin.faults.script({ fault: { kind: "status", status, body: text }, match: { path: PATH }, times });
}

test("each change of a setting that changes a bill is kept once, and later readings ask for newer ones", async () => {
  const bench = await setupLog();
  const { now } = bench;
  const expected = [
    change(bench, "update_ttl_settings", now - 300 * DAY_MS, { workspaceId: bench.workspaceIds[0] }),
    ...Array.from({ length: 230 }, (_, n) =>
      change(bench, "update_usage_limit", now - 200 * DAY_MS + n * HOUR_MS),
    ),
    change(bench, "update_payment_plan", now - DAY_MS),
  ];
  change(bench, "create_dataset", now - 100 * DAY_MS);
  change(bench, "update_usage_limit", now - 90 * DAY_MS, { succeeded: false });
  change(bench, "update_usage_limit", now - 500 * DAY_MS);
  expect(await read(bench)).toMatchObject({
    parts: { audit_log: { read: expected.length, refusal: null } },
    failed: [],
  });
  expect(await kept(bench)).toEqual(expected);
  expect(requests(bench)).toHaveLength(3);

  expect(await read(bench, true)).toMatchObject({ parts: { audit_log: { read: 0, refusal: null } } });
  expect(requests(bench)).toHaveLength(4);
  const late = change(bench, "delete_gateway_policy", now - 3 * DAY_MS);
  expect(await read(bench, true)).toMatchObject({ parts: { audit_log: { read: 1 } } });
  expect(await kept(bench)).toEqual([...expected.slice(0, -1), late, ...expected.slice(-1)]);
});

test.each([401, 403, 404])(
  "a server that responds %i has no log for this key, which is no failure each night",
  async (status) => {
    const bench = await setupLog();
    change(bench, "update_ttl_settings", bench.now - DAY_MS);
    respond(bench, "<html>no</html>", { status, times: 9 });
    expect(await read(bench, true)).toMatchObject({
      parts: { audit_log: { read: 0, refusal: expect.stringContaining(`${status}`) } },
      failed: [],
    });
    const before = requests(bench).length;
    const again = await read(bench, true);
    expect([again.parts.audit_log, again.failed]).toEqual([undefined, []]);
    expect(requests(bench)).toHaveLength(before);
    expect(await kept(bench)).toEqual([]);
    expect(bench.logs.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  },
);

test.each<[string, unknown]>([
  ["a list", []],
  ["a page without items", { cursor: null }],
  ["a cursor that is no text", { items: [], cursor: 7 }],
  ["the same empty page and cursor again and again", { items: [], cursor: "again" }],
])("a response that is %s fails this part alone, and the next reading has everything", async (_, body) => {
  const bench = await setupLog();
  const expected = change(bench, "update_ttl_settings", bench.now - DAY_MS);
  respond(bench, body, { times: 50 });
  const { parts, failed } = await read(bench);
  expect(parts.audit_log).toBeUndefined();
  expect(parts.usage_limits).toBeDefined();
  expect(failed).toMatchObject([{ part: "audit_log", code: "response_invalid" }]);
  expect(await kept(bench)).toEqual([]);
  bench.standin.faults.clear();
  await read(bench);
  expect(await kept(bench)).toEqual([expected]);
});

test("a page that fails after others keeps nothing, so that no older entry is taken for read", async () => {
  const bench = await setupLog();
  const all = Array.from({ length: 150 }, (_, n) =>
    change(bench, "update_usage_limit", bench.now - (150 - n) * DAY_MS),
  );
  const fault = { kind: "status", status: 500 } as const;
  bench.standin.faults.script({ fault, match: { path: PATH }, skip: 1, times: 50 });
  expect(await read(bench)).toMatchObject({ failed: [{ part: "audit_log" }] });
  bench.standin.faults.clear();
  await read(bench);
  expect(await kept(bench)).toEqual(all);
});

test("an empty page with a cursor is not the end, and a page that repeats adds nothing", async () => {
  const bench = await setupLog();
  const all = Array.from({ length: 120 }, (_, n) =>
    change(bench, "update_usage_limit", bench.now - (120 - n) * DAY_MS),
  );
  const cursor = (from: number) => Buffer.from(`${from}`).toString("base64");
  respond(bench, { items: [], cursor: cursor(0) });
  expect(await read(bench)).toMatchObject({ parts: { audit_log: { read: all.length } }, failed: [] });
  expect(await kept(bench)).toEqual(all);

  const again = await setupLog({ now: bench.now });
  const entries = Array.from({ length: 3 }, (_, n) => entry(again, { n }));
  respond(again, { items: [...entries, ...entries], cursor: cursor(0) });
  expect(await read(again)).toMatchObject({ parts: { audit_log: { read: 3 } }, failed: [] });
});

const uid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const entry = ({ now }: Bench, { n = 1, ...more }: { n?: number } & Record<string, unknown> = {}) => ({
  time: now - n * HOUR_MS,
  metadata: { uid: uid(n) },
  api: { operation: "update_ttl_settings" },
  ...more,
});

test.each<[string, Record<string, unknown>, string]>([
  ["no id", { metadata: {} }, "0.metadata.uid is nothing"],
  ["an id that is no UUID", { metadata: { uid: "ada@example.com" } }, "0.metadata.uid is "],
  ["no operation", { api: null }, "0.api is null"],
  ["no time", { time: undefined }, "0.time is nothing"],
  ["a time in seconds", { time: 1_780_000_000 }, "0.time is 1780000000, outside the requested time"],
  [
    "a time in the future",
    { time: 4_000_000_000_000 },
    "0.time is 4000000000000, outside the requested time",
  ],
  ["a time as a text", { time: "2026-07-03T10:00:00Z" }, "0.time is "],
])("an entry with %s is left out by its place, and nothing else is", async (_, wrong, place) => {
  const bench = await setupLog();
  respond(bench, { items: [{ ...entry(bench), ...wrong }, 7, entry(bench, { n: 2 })], cursor: null });
  expect(await read(bench)).toMatchObject({ parts: { audit_log: { read: 1, refusal: null } }, failed: [] });
  expect(await kept(bench)).toMatchObject([{ operation: "update_ttl_settings", is_certain: false }]);
  const [warning] = bench.logs.filter(({ code }) => code === "logged_change_refused");
  expect(warning).toMatchObject({ refused: 2, msg: expect.stringContaining(place) });
});

import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/domain/time/stride.ts";
import { planSource, routineDemand } from "../../../../src/pipeline/sync/plan.ts";
import { openStore } from "../../../../src/store/db/database.ts";
import { storeNow } from "../../../../src/store/load/fetch-ledger.ts";
import { fewestRequests } from "../../../support/fewest-requests.ts";
import { type Bench, senderOn, setup } from "../../../support/source.ts";
import { booked, differences, dump, inStore, totals, wrongFigures } from "../../../support/tables.ts";

const fetched = (bench: Bench) =>
  bench.sql<{ group_by: string; stride: string; period_start: Date; period_end: Date; n: number }>(
    `SELECT group_by, stride, period_start, period_end, count(*) AS n FROM usage.fetch
     WHERE purpose = 'load' GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3`,
  );

test("a sync stores exactly the ledger's usage in the fewest requests", async () => {
  const bench = await setup({ hourlyForMs: 2 * DAY_MS });
  const { run } = await bench.sync();

  const stored = await inStore(bench);
  expect(differences(stored, booked(bench, { hourDays: 2 }))).toEqual([]);
  const sums = totals(stored);
  for (const groupBy of ["project", "user", "api_key"]) {
    expect(sums[`${groupBy} day`]).toBe(sums["workspace day"]);
    expect(sums[`${groupBy} hour`]).toBe(sums["workspace hour"]);
  }
  expect(sums["workspace day"]).toBeGreaterThan(10_000);

  // Seven days are one window; so many hours in windows of 23. Five workspaces, by workspace at once; one has no traces, so it is
  // not asked for by another dimension.
  const now = await storeNow(bench.store.db);
  const hours = Math.ceil((now - (bench.today - 2 * DAY_MS)) / HOUR_MS);
  const windows = { day: 1, hour: Math.ceil(hours / 23) };
  expect(run.counts.map(({ groupBy, stride, planned: p, requests: r }) => [groupBy, stride, p, r])).toEqual(
    (["workspace", "project", "user", "api_key"] as const).flatMap((groupBy) =>
      (["day", "hour"] as const).map((stride) => {
        const isFirst = groupBy === "workspace";
        return [groupBy, stride, windows[stride] * (isFirst ? 1 : 5), windows[stride] * (isFirst ? 1 : 4)];
      }),
    ),
  );
});

test("the plan has the fewest requests that are possible", async () => {
  const bench = await setup({ days: 40, hourlyForMs: 3 * DAY_MS, workspaces: [0, 1] });
  const source = await bench.open();
  const wanted = routineDemand(source, await storeNow(bench.store.db));
  const tasks = await planSource(source, { wanted, reprocess: "missing" });
  const { planned } = await bench.sync();
  expect([tasks.length, planned]).toEqual([fewestRequests(tasks), fewestRequests(tasks)]);
});

test("a second sync fetches only provisional time and changes nothing", async () => {
  const bench = await setup({ hourlyForMs: 5 * DAY_MS });
  await bench.sync();
  const before = await dump(bench);
  const asked = (await fetched(bench)).reduce((sum, { n }) => sum + n, 0);
  const { run } = await bench.sync();
  expect(await dump(bench)).toEqual(before);
  for (const { rows } of run.counts) {
    expect(rows).toMatchObject({ inserted: 0, updated: 0, retired: 0, restated: 0, unverified: 0 });
    expect(rows.unchanged).toBe(rows.records);
  }
  const second = await bench.sql<{ period_start: Date; n: number }>(
    "SELECT period_start FROM usage.fetch WHERE purpose = 'load' ORDER BY fetch_number OFFSET $1",
    [asked],
  );
  expect(second.length).toBeGreaterThan(0);
  for (const { period_start } of second)
    expect(period_start.getTime()).toBeGreaterThanOrEqual(bench.today - 3 * DAY_MS);
});

test("a day becomes final once the settling time has passed since its end", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const final = await bench.sql<{ until: Date }>(
    `SELECT max(period_end) AS until FROM usage.coverage JOIN usage.trace_scope USING (scope_id)
     WHERE final AND stride = 'day'`,
  );
  expect(final[0]?.until.getTime()).toBe(bench.today - 3 * DAY_MS);
});

test("late and corrected counts of provisional time change in place", async () => {
  const bench = await setup({ hourlyForMs: 3 * DAY_MS, workspaces: [0, 1] });
  await bench.sync();
  const late = senderOn(bench.standin, 0, bench.today - DAY_MS);
  const corrected = senderOn(bench.standin, 1, bench.today - 2 * DAY_MS);
  bench.standin.ledger.change(late, 17);
  bench.standin.ledger.change(corrected, -1);
  const { run } = await bench.sync();
  expect(await wrongFigures(bench, { hourDays: 3 })).toEqual([]);
  expect(run.counts.reduce((sum, { rows }) => sum + rows.restated, 0)).toBe(0);
  expect((await dump(bench)).restatements).toEqual([]);
});

test("corrected counts of final time wait for --reprocess all and become restatements", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  const { dataStart, standin } = bench;
  await bench.sync();
  const sender = senderOn(standin, 0, dataStart);
  const before = await inStore(bench);
  standin.ledger.change(sender, 5);
  await bench.sync();
  expect(differences(await inStore(bench), before)).toEqual([]);

  const range = { start: dataStart, end: dataStart + 2 * DAY_MS };
  const { run } = await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  expect(await wrongFigures(bench)).toEqual([]);
  // The same five traces, once in each grouping.
  const { restatements } = await dump(bench);
  expect(restatements).toHaveLength(4);
  expect(run.counts.map(({ rows }) => rows.restated)).toEqual([1, 1, 1, 1]);
  for (const line of restatements) {
    const [old, changed] = line
      .split(" ")
      .slice(-3)
      .filter((word) => word !== ">")
      .map(Number);
    expect((changed ?? 0) - (old ?? 0)).toBe(5);
  }
  // Fetched once more it is no restatement again.
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  expect((await dump(bench)).restatements).toHaveLength(4);
});

test("nothing before the data start is requested, not even hours", async () => {
  const bench = await setup({
    workspaces: [0],
    standin: { dataStart: "2026-01-05" },
    days: 2,
    hourlyForMs: 9 * DAY_MS,
  });
  await bench.sync();
  const range = { start: bench.dataStart - 5 * DAY_MS, end: bench.today };
  await bench.fetch({
    wanted: [
      { stride: "day", range },
      { stride: "hour", range },
    ],
    reprocess: "all",
  });
  const rows = await fetched(bench);
  expect(rows.length).toBeGreaterThan(0);
  expect(Math.min(...rows.map((row) => row.period_start.getTime()))).toBe(bench.dataStart);
});

test.each([
  ["hash", /^sha256:[0-9a-f]{16}$/],
  ["drop", undefined],
] as const)("e-mail policy %s lets no address in, and the figures are the same", async (userEmail, form) => {
  const bench = await setup({ workspaces: [0, 1], userEmail });
  await bench.sync();
  const { standin } = bench;
  expect(await wrongFigures(bench)).toEqual([]);
  const names = await bench.sql<{ name: string }>(
    "SELECT name FROM usage.entity_name JOIN usage.entity USING (entity_id) WHERE dimension = 'user'",
  );
  if (form === undefined) expect(names).toEqual([]);
  else {
    expect(names.length).toBeGreaterThan(5);
    for (const { name } of names) expect(name).toMatch(form);
  }
  // Not anywhere else either.
  const [{ text } = { text: "" }] = await bench.sql<{ text: string }>(
    "SELECT string_agg(n::text, '') || (SELECT string_agg(e::text, '') FROM usage.entity e) AS text FROM usage.entity_name n",
  );
  for (const { email } of standin.organisation.users) if (email !== null) expect(text).not.toContain(email);
});

test("three syncs at the same time end in the same tables as one", async () => {
  const alone = await setup({ workspaces: [0, 1] });
  await alone.sync();
  const bench = await setup({ workspaces: [0, 1], now: alone.now });
  const stores = [1, 2, 3].map(() => openStore({ url: bench.databaseUrl, maxConnections: 4 }));
  try {
    const rounds = await Promise.all(stores.map((store) => bench.sync({ store })));
    expect(rounds.flatMap(({ run }) => run.failures)).toEqual([]);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
  expect(await dump(bench)).toEqual(await dump(alone));
});

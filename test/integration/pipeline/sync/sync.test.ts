import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { openStore } from "../../../../src/core/store/db/database.ts";
import { storeNow } from "../../../../src/core/store/work/fetch-ledger.ts";
import { type Bench, setup } from "../../../support/source.ts";
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

test("a second sync fetches only provisional time and changes nothing", async () => {
  const bench = await setup({ hourlyForMs: 5 * DAY_MS });
  await bench.sync();
  const before = await dump(bench);
  const requested = (await fetched(bench)).reduce((sum, { n }) => sum + n, 0);
  const { run } = await bench.sync();
  expect(await dump(bench)).toEqual(before);
  for (const { rows } of run.counts) {
    expect(rows).toMatchObject({ inserted: 0, updated: 0, retired: 0, restated: 0, unverified: 0 });
    expect(rows.unchanged).toBe(rows.records);
  }
  const second = await bench.sql<{ period_start: Date; n: number }>(
    "SELECT period_start FROM usage.fetch WHERE purpose = 'load' ORDER BY fetch_number OFFSET $1",
    [requested],
  );
  expect(second.length).toBeGreaterThan(0);
  for (const { period_start } of second)
    expect(period_start.getTime()).toBeGreaterThanOrEqual(bench.today - 3 * DAY_MS);
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

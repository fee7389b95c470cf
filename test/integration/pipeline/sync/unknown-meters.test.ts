import { afterAll, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../../../src/core/base/config.ts";
import { addMonths, monthStart } from "../../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { METER_NAME } from "../../../../src/core/domain/usage/meter.ts";
import { openIncidents } from "../../../../src/features/alerts/conditions.ts";
import { otherUsage } from "../../../../src/features/costs/other-usage.store.ts";
import { TOOLS } from "../../../../src/features/mcp/tools.ts";
import type { FaultStep } from "../../../../src/features/standin/engine/faults.ts";
import { createPrices } from "../../../support/charges.ts";
import { now } from "../../../support/clock.ts";
import { runHere } from "../../../support/in-process.ts";
import { openBench } from "../../../support/source.ts";
import { openMigrated } from "../../../support/store.ts";

/**
 * Kinds of usage of which it is not known whether the server counts them, since its responses about them cannot be used: whatever says
 * how complete figures are says so.
 */

const KINDS = ["longlived", "deployments", "sandboxes", "evaluators"] as const;
const NAMES = KINDS.map((meter) => METER_NAME[meter]);
const MATCHES: readonly NonNullable<FaultStep["match"]>[] = [
  { query: { trace_tier: "longlived" } },
  { query: { kind: "langsmith_deployments" } },
  { path: "/sandboxes/usage/" },
  { path: "/evaluators/spend" },
];

/** Of a proxy that asks to sign in: no other attempt would get another response. */
const FOREIGN = {
  kind: "status",
  status: 200,
  body: "<html>Sign in</html>",
  content_type: "text/html",
} as const;

let bench: Awaited<ReturnType<typeof openBench>>;
let drop: () => Promise<void>;
let month: string;
let first: Awaited<ReturnType<typeof runHere>>;

const run = (...args: string[]) =>
  runHere(args, {
    DATABASE_URL: bench.databaseUrl,
    USAGE_BASE_URL: bench.standin.url,
    USAGE_API_KEY: bench.standin.apiKey,
    USAGE_WORKSPACE_IDS: bench.workspaceIds.join(),
    USAGE_DATA_START: `${month}-01`,
    USAGE_HOURLY_FOR: "PT1H",
    USAGE_LOG_LEVEL: "silent",
  });

beforeAll(async () => {
  const migrated = await openMigrated();
  drop = migrated.drop;
  const today = new Date(now()).toISOString().slice(0, 10);
  const start = addMonths(monthStart(today), -1);
  month = start.slice(0, 7);
  bench = await openBench({
    ...migrated,
    now: now(),
    days: (Date.parse(today) - Date.parse(start)) / DAY_MS,
    workspaces: [0],
    standin: { contract: "day-granular", deploymentStart: start, sandboxes: "on", evaluators: "on" },
  });
  for (const match of MATCHES) bench.standin.faults.script({ fault: FOREIGN, times: 100_000, match });
  first = await run("sync", "--inline");
  await createPrices(bench.store, [
    { sku: "long", measure: "longlived", unitPrice: "1", from: "2020-01-01" },
    { sku: "short", measure: "shortlived", unitPrice: "1", from: "2020-01-01" },
  ]);
}, 120_000);

afterAll(async () => {
  await bench.close();
  await drop();
});

function expectNamed(text: string): void {
  for (const name of NAMES) expect(text.toLowerCase()).toContain(name);
}

test("each sync asks again, says what is not known, and does not exit with 0", async () => {
  expect(first.code).toBe(3);
  expectNamed(first.stdout);
  const before = bench.standin.faults.fired;
  const again = await run("sync", "--inline");
  expect(bench.standin.faults.fired).toBeGreaterThanOrEqual(before + KINDS.length);
  expect(again.code).toBe(3);
  expectNamed(again.stdout);
});

test("status names what is not known", async () => {
  const { code, stdout } = await run("status");
  expect(code).toBe(3);
  expectNamed(stdout);
});

test("the bill has a line for each", async () => {
  const { stdout } = await run("bill", month, "--json");
  const [{ lines }] = JSON.parse(stdout);
  const unknown = lines.filter((one: { line: string }) => one.line === "not_known");
  expect(unknown.map((one: { measure: string }) => one.measure).sort()).toEqual(
    ["lcu", "longlived", "nodes_executed", "spend_usd"].sort(),
  );
  expect(new Set(unknown.map((one: { cost: unknown }) => one.cost))).toEqual(new Set([null]));
});

test("coverage has gaps, of each kind and of all together", async () => {
  expect((await run("coverage", "--fail-on-gaps", "--kind", "traces")).code).toBe(0);
  const all = await run("coverage", "--fail-on-gaps");
  expect(all.code).toBe(4);
  expectNamed(all.stdout);
  for (const [flag, name] of [
    ["--tier", "longlived"],
    ["--kind", "langsmith_deployments"],
    ["--kind", "sandboxes"],
    ["--kind", "evaluators"],
  ] as const)
    expect([name, (await run("coverage", "--fail-on-gaps", flag, name)).code]).toEqual([name, 4]);
});

test("doctor warns of each", async () => {
  const { stdout } = await run("doctor", "--json");
  const found = JSON.parse(stdout).filter((one: { code: string }) => one.code === "meter_not_known");
  expect(found).toHaveLength(KINDS.length);
  expectNamed(JSON.stringify(found));
});

test("no month is closed", async () => {
  const { code, stdout } = await run("close", month, "--without-costs", "--json");
  expect(code).toBe(4);
  const [{ open }] = JSON.parse(stdout);
  const meters = open
    .filter((one: { reason: string }) => one.reason === "not_known")
    .map((one: { meter: string }) => one.meter);
  expect(new Set(meters)).toEqual(new Set(KINDS));
});

test("an alert fires an hour later, and not before", async () => {
  const settings = { sources: [{ slug: "default" }], staleAfterMs: 1e12, syncEveryMs: 900_000 };
  const firing = async () =>
    [...(await openIncidents(bench.store.db, settings as never)).values()]
      .flat()
      .filter(({ kind }) => kind === ("meter_not_known" as string));
  const since = (interval: string) =>
    bench.sql("UPDATE usage.source_meter SET learned_at = now() - $1::interval", [interval]);
  await since("59 minutes");
  expect(await firing()).toEqual([]);
  await since("61 minutes");
  const [alert] = await firing();
  expectNamed(alert?.message ?? "");
});

test("an AI client is told of each", async () => {
  const { db } = bench.store;
  const sources = { config: readConfig({}), store: bench.store, db, reader: "usage_reader" } as const;
  expectNamed(JSON.stringify(await TOOLS.status.response(sources, {})));
});

test("a month of which it is known that none was counted is not held open by them", async () => {
  const start = Date.parse(`${month}-01T00:00:00Z`);
  const range = { start, end: Date.parse(`${addMonths(`${month}-01`, 1)}T00:00:00Z`) };
  const [source] = await bench.sql<{ id: number }>("SELECT source_id AS id FROM usage.source");
  const states = async () => {
    const known = await otherUsage(bench.store.db, { sourceId: source?.id as number, range });
    return new Set(
      known.filter(({ meter }) => KINDS.some((kind) => kind === meter)).map(({ state }) => state),
    );
  };
  expect(await states()).toEqual(new Set(["not_known"]));
  await bench.sql("UPDATE usage.source_meter SET none_until = now() + interval '62 days'");
  expect(await states()).toEqual(new Set(["not_counted"]));
});

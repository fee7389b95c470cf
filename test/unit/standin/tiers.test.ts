import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Stream } from "../../../src/local/standin/engine/organisation.ts";
import { type Bench, BUSY_HOUR, busyCell, NOW, SEED, setup, sum } from "./setup.ts";

const DAY_MS = 86_400_000;
const DAY = { start: "2026-06-02", end: "2026-06-03" };
const GROUPINGS = ["workspace", "project", "user", "api_key"];

type Ask = Parameters<Bench["usage"]>[0];
const tiersOf = async ({ usage }: Pick<Bench, "usage">, ask: Ask) => {
  const [longlived, shortlived, all] = await Promise.all(
    [{ trace_tier: "longlived" }, { trace_tier: "shortlived" }, {}].map((more) => usage({ ...ask, more })),
  );
  return { longlived: sum(longlived as never), shortlived: sum(shortlived as never), all: sum(all as never) };
};

const HOUR_MS = 3_600_000;
/** Most rules have not run yet on the last days. */
const RECENT = { min: (NOW - 8 * DAY_MS) / HOUR_MS, max: (NOW + DAY_MS) / HOUR_MS };
const stepOn = (streams: readonly Stream[]) =>
  fc.record({
    stream: fc.constantFrom(...streams),
    at: fc
      .integer({ min: Math.floor(RECENT.min), max: Math.floor(RECENT.max) })
      .map((hour) => hour * HOUR_MS),
    what: fc.constantFrom("upgrade", "upgrade", "arrival", "restatement", "later"),
    traces: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 500 })),
    clock: fc.integer({ min: 0, max: 20 * DAY_MS }),
  });
type Step = ReturnType<typeof stepOn> extends fc.Arbitrary<infer S> ? S : never;

function take({ standin }: Bench, { stream, at, what, traces, clock }: Step): void {
  const cell = { project: stream.project, user: stream.user, key: stream.key, at };
  const { ledger } = standin;
  if (what === "upgrade") ledger.upgrade(cell, traces);
  if (what === "later") ledger.upgrade(cell, traces, NOW + clock);
  if (what === "arrival") ledger.change(cell, traces, traces % 2 ? "longlived" : "shortlived");
  if (what === "restatement") ledger.change(cell, -traces);
}

describe(`long-lived and short-lived add up to all (SEED=${SEED})`, () => {
  test("in each row, under arrivals, restatements and upgrades, and while rules run", async () => {
    const bench = await setup({ seed: SEED, contract: "day-granular" });
    const { standin } = bench;
    const { ledger, organisation } = standin;
    const busy = organisation.streams.filter(({ weight }) => weight > 20);
    await fc.assert(
      fc.property(stepOn(busy), (step) => {
        standin.setClock({ frozenAt: NOW });
        const start = Math.floor(step.at / DAY_MS) * DAY_MS;
        const hours = Array.from({ length: 25 }, (_, hour) => start + hour * HOUR_MS);
        const inTiers = () =>
          [null, "longlived" as const, "shortlived" as const].map((tier) => [
            ...ledger.counts(step.stream, hours, tier),
          ]);
        const [before = [], longBefore = []] = inTiers();
        take(bench, step);
        const isUpgrade = step.what === "upgrade" || step.what === "later";
        for (const passed of [0, step.clock]) {
          standin.setClock({ frozenAt: NOW + passed });
          const [all = [], longlived = [], shortlived = []] = inTiers();
          expect(longlived.map((traces, i) => traces + (shortlived[i] ?? 0))).toEqual(all);
          expect(Math.min(...longlived, ...shortlived)).toBeGreaterThanOrEqual(0);
          // An upgrade only moves, and only upwards.
          if (isUpgrade && passed === 0) expect(all).toEqual(before);
          if (isUpgrade && passed === 0) {
            longlived.forEach((traces, i) => {
              expect(traces).toBeGreaterThanOrEqual(longBefore[i] ?? 0);
            });
          }
          const day = [start, start + DAY_MS];
          const sum = shortlived.reduce((a, b) => a + b, 0);
          expect(ledger.counts(step.stream, day, "shortlived")[0]).toBe(sum);
        }
      }),
      { numRuns: 1000, seed: SEED },
    );
  });

  test("in every dimension and format of the answers", async () => {
    const bench = await setup({ seed: SEED, contract: "day-granular" });
    const { standin, usage, csv } = bench;
    await fc.assert(
      fc.asyncProperty(
        stepOn(standin.organisation.streams),
        fc.constantFrom(...GROUPINGS),
        async (step, by) => {
          standin.setClock({ frozenAt: NOW });
          take(bench, step);
          standin.setClock({ frozenAt: NOW + step.clock });
          const start = Math.floor(step.at / DAY_MS) * DAY_MS;
          const ask = { start: start - 3 * DAY_MS, end: start + DAY_MS };
          const { longlived, shortlived, all } = await tiersOf(bench, { ...ask, by });
          expect(longlived + shortlived).toBe(all);
          expect(sum(await usage({ ...ask, by: "trace_tier" }))).toBe(all);
          const lines = await csv({ ...ask, by, more: { trace_tier: "longlived" } });
          expect(lines.reduce((traces, line) => traces + Number(line.Traces), 0)).toBe(longlived);
        },
      ),
      { numRuns: 12, seed: SEED },
    );
  });
});

describe("upgrades", () => {
  test("an upgrade moves traces to the other tier in the hour of their receipt, as many as there are", async () => {
    const bench = await busyCell();
    const { admin, cell, standin } = bench;
    standin.settings.contract = "day-granular";
    const before = await tiersOf(bench, DAY);
    const moved = await admin<{ before: number; after: number }>("POST", "/upgrades", { ...cell, traces: 1 });
    expect(moved.after).toBe(moved.before + 1);
    expect(await tiersOf(bench, DAY)).toEqual({
      longlived: before.longlived + 1,
      shortlived: before.shortlived - 1,
      all: before.all,
    });
    const all = await admin<{ after: number }>("POST", "/upgrades", { ...cell, traces: 1_000_000 });
    const { project, user, key } = standin.organisation.streams.find(
      (s) =>
        s.project.id === cell.project_id &&
        s.user?.id === cell.user_id &&
        s.key?.shortKey === cell.api_key_short_key,
    ) as never;
    expect(all.after).toBe(standin.ledger.read({ project, user, key, at: Date.parse(BUSY_HOUR) }));
    expect((await tiersOf(bench, DAY)).all).toBe(before.all);
  });

  test("an upgrade may show later, and a long-lived arrival counts as such", async () => {
    const bench = await busyCell();
    const { admin, cell, standin } = bench;
    standin.settings.contract = "day-granular";
    const { longlived } = await tiersOf(bench, DAY);
    await admin("POST", "/upgrades", { ...cell, traces: 1, from: "2026-09-16T14:00:00Z" });
    expect((await tiersOf(bench, DAY)).longlived).toBe(longlived);
    await admin("POST", "/clock", { now: "2026-09-16T14:00:00Z" });
    expect((await tiersOf(bench, DAY)).longlived).toBe(longlived + 1);
    await admin("POST", "/arrivals", { ...cell, traces: 3, trace_tier: "longlived" });
    expect((await tiersOf(bench, DAY)).longlived).toBe(longlived + 4);
  });

  test("seeded rules upgrade past days while the clock goes on, and never change what all tiers hold", async () => {
    const bench = await setup({ contract: "day-granular" });
    const week = { start: "2026-09-07", end: "2026-09-14" };
    const before = await tiersOf(bench, week);
    expect(before.longlived).toBeGreaterThan(0);
    expect(before.shortlived).toBeGreaterThan(0);
    bench.standin.setClock({ frozenAt: NOW + 10 * DAY_MS });
    const after = await tiersOf(bench, week);
    expect(after.all).toBe(before.all);
    expect(after.longlived).toBeGreaterThan(before.longlived);
    bench.standin.setClock({ frozenAt: NOW });
    expect(await tiersOf(bench, week)).toEqual(before);
  });
});

describe("a server that keeps no long-lived usage", () => {
  test.each([
    ["0.16.0", "self-hosted", false],
    ["0.16.1-rc1", "self-hosted", false],
    ["1.0.0", "self-hosted", false],
    ["0.15.9", "self-hosted", true],
    ["0.0.0-standin", "self-hosted", true],
    ["0.16.0", "cloud", true],
  ] as const)("version %s, %s: keeps it %s", async (serverVersion, hosting, keeps) => {
    const bench = await setup({ contract: "day-granular", serverVersion, hosting });
    const info = (await (await bench.get("/api/v1/info")).json()) as Record<string, unknown>;
    expect(info.version).toBe(serverVersion);
    expect("billing_installation_id" in info).toBe(hosting === "self-hosted");
    const { longlived, shortlived, all } = await tiersOf(bench, DAY);
    expect(longlived > 0).toBe(keeps);
    expect(longlived + shortlived).toBe(all);
    const rows = (await bench.usage({ ...DAY, by: "trace_tier" })).usage;
    expect(rows.map((row) => row.dimensions.trace_tier)).toEqual(
      keeps ? ["longlived", "shortlived"] : ["shortlived"],
    );
  });
});

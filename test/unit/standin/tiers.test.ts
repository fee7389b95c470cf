import fc from "fast-check";
import { describe, expect, test } from "vitest";
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

describe(`long-lived and short-lived add up to all (SEED=${SEED})`, () => {
  test("under arrivals, restatements and upgrades at any time, in every dimension and format", async () => {
    const bench = await setup({ seed: SEED, contract: "day-granular" });
    const { standin, usage, csv } = bench;
    const { streams } = standin.organisation;
    const step = fc.record({
      stream: fc.constantFrom(...streams),
      at: fc.integer({ min: Date.parse("2026-08-20"), max: NOW + DAY_MS }),
      what: fc.constantFrom("upgrade", "upgrade", "arrival", "restatement", "later"),
      traces: fc.integer({ min: 1, max: 60 }),
      clock: fc.integer({ min: 0, max: 20 * DAY_MS }),
      by: fc.constantFrom(...GROUPINGS, "trace_tier"),
    });
    await fc.assert(
      fc.asyncProperty(step, async ({ stream, at, what, traces, clock, by }) => {
        const cell = { project: stream.project, user: stream.user, key: stream.key, at };
        standin.setClock({ frozenAt: NOW });
        const start = Math.floor(at / DAY_MS) * DAY_MS;
        const ask = { start, end: start + DAY_MS };
        const before = await tiersOf(bench, ask);
        if (what === "upgrade") standin.ledger.upgrade(cell, traces);
        if (what === "later") standin.ledger.upgrade(cell, traces, NOW + clock);
        const moved = await tiersOf(bench, ask);
        // Only moved between tiers, and only upwards.
        expect(moved.all).toBe(before.all);
        expect(moved.longlived).toBeGreaterThanOrEqual(before.longlived);
        if (what === "arrival") standin.ledger.change(cell, traces, traces % 2 ? "longlived" : "shortlived");
        if (what === "restatement") standin.ledger.change(cell, -traces);
        standin.setClock({ frozenAt: NOW + clock });
        for (const one of [
          ask,
          { ...ask, start: start - 5 * DAY_MS, by: by === "trace_tier" ? "user" : by },
        ]) {
          const { longlived, shortlived, all } = await tiersOf(bench, one);
          expect(longlived + shortlived).toBe(all);
          expect(Math.min(longlived, shortlived)).toBeGreaterThanOrEqual(0);
        }
        const hours = Array.from({ length: 25 }, (_, hour) => start + hour * 3_600_000);
        const inTier = (edges: number[]) => standin.ledger.counts(stream, edges, "shortlived");
        expect(Math.min(...inTier(hours))).toBeGreaterThanOrEqual(0);
        expect(inTier(hours).reduce((a, b) => a + b, 0)).toBe(inTier([start, start + DAY_MS])[0]);
        const rows = await usage({ ...ask, by: "trace_tier" });
        expect(sum(rows)).toBe((await tiersOf(bench, ask)).all);
        const lines = await csv({
          ...ask,
          by: by === "trace_tier" ? "user" : by,
          more: { trace_tier: "longlived" },
        });
        expect(lines.reduce((all, line) => all + Number(line.Traces), 0)).toBe(
          (await tiersOf(bench, ask)).longlived,
        );
      }),
      { numRuns: 60, seed: SEED },
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
    expect(await (await bench.get("/api/v1/info")).json()).toMatchObject({ version: serverVersion });
    const { longlived, shortlived, all } = await tiersOf(bench, DAY);
    expect(longlived > 0).toBe(keeps);
    expect(longlived + shortlived).toBe(all);
    const rows = (await bench.usage({ ...DAY, by: "trace_tier" })).usage;
    expect(rows.map((row) => row.dimensions.trace_tier)).toEqual(
      keeps ? ["longlived", "shortlived"] : ["shortlived"],
    );
  });
});

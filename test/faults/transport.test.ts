import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../src/core/domain/time/stride.ts";
import type { FaultStep } from "../../src/features/standin/engine/faults.ts";
import type { StandinOptions } from "../../src/features/standin/server.ts";
import { now } from "../support/clock.ts";
import { seed } from "../support/drawn.ts";
import { type Bench, setup } from "../support/source.ts";
import { dump } from "../support/tables.ts";

/** SEED=n repeats the random faults of a failed run. */
const SEED = seed();

let undisturbed: { hour: number; now: number; tables: Awaited<ReturnType<typeof dump>> } | undefined;

/** Syncs from a server that `disturb` made faulty. Returns its tables, and as `expected` those of an undisturbed sync. */
async function disturbed(disturb: (bench: Bench) => void, standin: Omit<StandinOptions, "now"> = {}) {
  const workspaces = [0, 1];
  const hour = Math.floor(now() / HOUR_MS);
  if (undisturbed?.hour !== hour) {
    const calm = await setup({ workspaces });
    await calm.sync();
    undisturbed = { hour, now: calm.now, tables: await dump(calm) };
  }
  const bench = await setup({ workspaces, now: undisturbed.now, standin });
  const { run } = await bench.sync({ opened: () => disturb(bench) });
  return { bench, run, tables: await dump(bench), expected: undisturbed.tables };
}

const usage = { path: "/granular-usage" };
const script = (bench: Bench, ...steps: FaultStep[]) => bench.standin.faults.script(...steps);

describe("a sync ends with the tables of an undisturbed one", () => {
  const faults: [string, FaultStep["fault"], Omit<StandinOptions, "now">?][] = [
    ["answers of 429", { kind: "status", status: 429 }],
    ["answers of 429 with a time", { kind: "status", status: 429, retry_after: 3 }],
    ["answers of 500", { kind: "status", status: 500 }],
    ["answers of 502", { kind: "status", status: 502 }],
    ["answers of 408", { kind: "status", status: 408 }],
    ["connections that are reset", { kind: "reset" }],
    ["bodies cut short of their length", { kind: "cut", framing: "length", at: "half" }],
    ["bodies whose length promises one byte more", { kind: "cut", framing: "length", at: "all" }],
    ["chunked bodies that lack only the last chunk", { kind: "cut", framing: "chunked", at: "all" }],
    ["chunked bodies that end half way", { kind: "cut", framing: "chunked", at: "half" }],
    ["gzip bodies without their trailer", { kind: "cut", framing: "gzip" }],
    ["gzip bodies that the connection ends half way", { kind: "cut", framing: "close", at: "half" }],
    [
      "plain bodies that the connection ends half way",
      { kind: "cut", framing: "close", at: "half" },
      { compress: false },
    ],
    ["slow bodies", { kind: "slow", ms: 150 }],
    ["whole bodies in chunks", { kind: "whole", framing: "chunked" }],
    ["whole bodies that end with the connection", { kind: "whole", framing: "close" }, { compress: false }],
  ];
  test.each(faults)("after %s", async (_, fault, standin) => {
    const { bench, run, tables, expected } = await disturbed(
      (b) => script(b, { fault, times: 6, skip: 1, match: usage }),
      standin,
    );
    expect(run.failures).toEqual([]);
    expect(bench.standin.faults.fired).toBe(6);
    expect(tables).toEqual(expected);
  });

  test.each([0, 1, 2])(`once random faults of seed ${SEED} + %i have passed`, async (n) => {
    const { bench, expected } = await disturbed((b) =>
      b.standin.faults.set({
        seed: SEED + n,
        rates: {
          "429": 0.03,
          "429-retry-after": 0.03,
          "500": 0.03,
          "503": 0.03,
          reset: 0.06,
          "cut-length": 0.04,
          "cut-chunked": 0.04,
          "cut-close": 0.04,
          "cut-gzip": 0.04,
        },
      }),
    );
    expect(bench.standin.faults.fired).toBeGreaterThan(0);
    // A task may have had eight in a row.
    bench.standin.faults.clear();
    await bench.passTime();
    await bench.sync();
    expect(await dump(bench)).toEqual(expected);
  });

  test.each(["chunked", "close"] as const)("when every body is framed by %s", async (framing) => {
    const { run, tables, expected } = await disturbed(() => {}, { framing, compress: false });
    expect(run.failures).toEqual([]);
    expect(tables).toEqual(expected);
  });
});

import { describe, expect, test } from "vitest";
import { type Bench, setup, sum } from "./setup.ts";

const DAY = { start: "2026-06-02", end: "2026-06-03" };

type Ask = Parameters<Bench["usage"]>[0];
const tiersOf = async ({ usage }: Pick<Bench, "usage">, ask: Ask) => {
  const [longlived, shortlived, all] = await Promise.all(
    [{ trace_tier: "longlived" }, { trace_tier: "shortlived" }, {}].map((more) => usage({ ...ask, more })),
  );
  return { longlived: sum(longlived as never), shortlived: sum(shortlived as never), all: sum(all as never) };
};

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

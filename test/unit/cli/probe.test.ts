import { expect, test } from "vitest";
import { describeProbe, exitOfProbe } from "../../../src/cli/commands/proof/probe.ts";
import type { ProbeResult } from "../../../src/pipeline/proof/probe.ts";

const result: ProbeResult = {
  probeId: 7,
  state: "matched",
  resumed: false,
  expected: 6,
  figures: [
    {
      groupBy: "workspace",
      expectedId: "own",
      billed: 6,
      othersAdded: 0,
      othersRemoved: 0,
      difference: 0,
      rises: [
        { id: "another", traces: 14 },
        { id: "own", traces: 6 },
        { id: "a third", traces: -1 },
      ],
    },
  ],
  firstDelayMs: 1_200,
  delayMs: 61_000,
  lateAfterMs: 60_000,
};

test("a probe's first line has its verdict and how late it was billed, and the last one what was not checked", () => {
  const lines = describeProbe(result).split("\n");
  expect(lines[0]).toBe(
    "Probe 7: matched, 6 traces sent; first billed 1.2 s and all billed 61.0 s after the last one (limit 60.0 s)",
  );
  expect(lines.at(-1)).toBe(
    "Not checked: whether other workspaces changed by traffic of their own only (another +14, a third -1).",
  );
  const part = { ...result, figures: [], delayMs: null };
  expect(describeProbe(part)).toContain("first billed 1.2 s after the last one, never all of them");
  expect(describeProbe({ ...part, firstDelayMs: null })).toContain("6 traces sent; none billed");
});

test("only a probe that matched ends with 0", () => {
  const exits = (["matched", "late", "differs", "inconclusive"] as const).map((state) =>
    exitOfProbe({ ...result, state }),
  );
  expect(exits).toEqual([0, 4, 4, 3]);
});

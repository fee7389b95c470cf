import fc from "fast-check";
import { test } from "vitest";
import type { Meter } from "../../../../src/core/domain/usage/meter.ts";
import { times } from "../../../support/drawn.ts";
import { setupStore } from "../setup.ts";
import type { Command } from "./commands.ts";
import { FIXED } from "./fixed-histories.ts";
import { history } from "./histories.ts";
import { History } from "./history.ts";

// Rule 16 of docs/rules.md, and all rules that it builds on.

const numRuns = FIXED.length + times(5);
const timeout = 120_000 + numRuns * 8_000;

test("tables and views equal the model after every step of any history", { timeout }, async () => {
  const bundle = await setupStore();
  const holds = async (commands: Command[], meter: Meter) => {
    const past = await History.begin(bundle, meter);
    for (const command of commands) {
      await past.run(command);
      await past.check();
    }
  };
  await fc.assert(
    fc.asyncProperty(history, fc.constantFrom("traces", "traces", "longlived", "shortlived"), holds),
    // A failure that takes long to shrink is told with its seed before the test's own deadline hides it.
    { examples: FIXED, numRuns, interruptAfterTimeLimit: timeout - 20_000, markInterruptAsFailure: true },
  );
});

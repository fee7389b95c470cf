import fc from "fast-check";
import { test } from "vitest";
import { setupStore } from "../setup.ts";
import type { Command } from "./commands.ts";
import { history } from "./histories.ts";
import { History } from "./history.ts";

// Rule 16 and all that it rests on: any history of answers leaves the store where the model of it is.

const numRuns = Number(process.env.MODEL_RUNS ?? 60);
const timeout = 30_000 + numRuns * 2_000;

test("after every step of any history, tables and views are what the model says", { timeout }, async () => {
  const bundle = await setupStore();
  const holds = async (commands: Command[]) => {
    const past = await History.begin(bundle);
    for (const command of commands) {
      await past.run(command);
      await past.check();
    }
  };
  await fc.assert(fc.asyncProperty(history, holds), { numRuns });
});

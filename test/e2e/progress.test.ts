import { expect, test } from "vitest";
import { onTerminal } from "../support/terminal.ts";
import { bench, envOf } from "./program.ts";

const BAR = /^default \[[=>-]{20}\] \d+\/\d+ requests \d+%/;

test("a sync on a terminal shows its progress, and a warning of the log as a sentence above it", async () => {
  const made = await bench({ workspaces: [0] });
  const [path, refused] = ["granular-usage", { kind: "status", status: 404 } as const];
  made.standin.faults.script({ fault: refused, times: 1, match: { path, query: { group_by: "user" } } });
  made.standin.faults.script({ fault: { kind: "slow", ms: 3_000 }, times: 1_000, match: { path } });
  const terminal = onTerminal(["sync", "--inline"], envOf(made));
  await terminal.shows(BAR, 60_000);
  expect(await terminal.ended).toBe(3);
  const lines = await terminal.lines();
  const text = lines.join("\n");
  expect(text).toMatch(/^warning: default: task not loaded: /m);
  expect(text).toMatch(/^Not all of it is loaded/m);
  // It was drawn below each of them, and is gone.
  expect(lines.filter((line) => line.startsWith("{") || BAR.test(line))).toEqual([]);
});

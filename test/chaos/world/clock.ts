import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { buildClock } from "../../support/clock-library.ts";

/** Settings of a process whose clock is that many seconds off. */
export function clockOff(seconds: number): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-chaos-clock-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // Postgres runs as another user.
  chmodSync(folder, 0o755);
  const library = buildClock(folder);
  if (library === undefined) throw new Error("the clock cannot be compiled: install a C compiler (`cc`)");
  return { LD_PRELOAD: library, CLOCK_OFFSET: `${Math.round(seconds)}` };
}

/** Moves the clock of every process that the test starts from here on, so that it shows `at` (epoch milliseconds) now. */
export function moveClocks(at: number): void {
  const moved = clockOff((at - Date.now()) / 1_000);
  Object.assign(process.env, moved);
  onTestFinished(() => {
    for (const name of Object.keys(moved)) delete process.env[name];
  });
}

import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createOutput } from "../../../src/cli/report/output.ts";
import { createBar, createPace, lineOf, type Progress } from "../../../src/cli/report/progress.ts";
import { createLogger } from "../../../src/log.ts";

const WHAT = { label: "default", unit: "requests" };

/** A pace after these counts, a second apart. */
function paceOf(...counts: (number | Progress)[]) {
  let at = 0;
  const pace = createPace({ now: () => at });
  for (const count of counts) {
    pace.note(typeof count === "number" ? { done: count } : count);
    at += 1_000;
  }
  return pace;
}

describe("the rate", () => {
  test("does not count what was done before", () => {
    expect(paceOf(5_000).rate()).toBeUndefined();
    expect(paceOf(5_000, 5_010, 5_020).rate()).toBeCloseTo(10);
  });
  test("is smoothed: one second changes it by a tenth, and many seconds wholly", () => {
    expect(paceOf(0, 10, 20, 30, 130).rate()).toBeCloseTo(10 + 90 * (1 - Math.exp(-0.1)));
    const stalled = paceOf(...Array.from({ length: 100 }, (_, at) => Math.min(at, 20) * 10));
    expect(stalled.rate()).toBeLessThan(0.1);
  });
  test("is not that of time that was paused", () => {
    const paused = { done: 20, paused: true };
    expect(paceOf(0, 10, 20, paused, paused, paused, 30, 40).rate()).toBeCloseTo(10);
  });
});

test.each<[Progress, (number | Progress)[], string]>([
  [{ done: 1_204, total: 4_380 }, [], "default [=====>--------------] 1,204/4,380 requests 27%"],
  [
    { done: 1_204, total: 4_380 },
    [0, 41],
    "default [=====>--------------] 1,204/4,380 requests 27% 41/s, 1 min 18 s left",
  ],
  [{ done: 0, total: 10 }, [0, 0.5], "default [>-------------------] 0/10 requests 0% 0.5/s, 20 s left"],
  [{ done: 10, total: 10 }, [0, 5], "default [====================] 10/10 requests 100% 5.0/s"],
  [
    { done: 12, total: 80, paused: true },
    [0, 41],
    "default [===>----------------] 12/80 requests 15% paused",
  ],
  [{ done: 0, total: 0 }, [], "default [====================] 0/0 requests 100%"],
  [{ done: 12_345 }, [0, 5_000], "default: 12,345 requests 5,000/s"],
])("%j is shown with unit, rate and time left", (progress, counts, line) => {
  expect(lineOf(WHAT, progress, paceOf(...counts))).toBe(line);
  expect(line.length).toBeLessThan(80);
});

const CLEAR = "\u001b[K";

/** The lines of a terminal after what was written. It knows what we use: line feeds, returns and clearing to the end. */
function screenOf(written: string): string[] {
  const lines = [""];
  let column = 0;
  for (const [piece] of written.replaceAll(CLEAR, "\f").matchAll(/[\r\n\f]|[^\r\n\f]+/g)) {
    const last = lines.pop() ?? "";
    if (piece === "\n") lines.push(last, "");
    else
      lines.push(
        piece === "\f"
          ? last.slice(0, column)
          : piece === "\r"
            ? last
            : last.slice(0, column) + piece + last.slice(column + piece.length),
      );
    column = piece === "\r" || piece === "\n" ? 0 : piece === "\f" ? column : column + piece.length;
  }
  return lines;
}

test("lines stand above the bar, which stays the last line and goes at the end", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const terminal = { columns: 40, write: (text: string) => written.push(text) > 0 };
  const bar = createBar(terminal, { now: () => Date.now() });
  const long = "a warning that is longer than forty columns of a terminal";
  const result = await bar.show(WHAT, async (update) => {
    update({ done: 1, total: 8 });
    await vi.advanceTimersByTimeAsync(900);
    // Work that is over soon shows nothing.
    expect(written).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(screenOf(written.join(""))).toEqual(["default [===>----------------] 1/8 requ"]);
    bar.above(`${long}\n`);
    expect(screenOf(written.join(""))).toEqual([long, ""]);
    await vi.advanceTimersByTimeAsync(100);
    expect(screenOf(written.join(""))).toEqual([long, "default [===>----------------] 1/8 requ"]);
    bar.above("two\nlines\n");
    await vi.advanceTimersByTimeAsync(100);
    return "done";
  });
  expect([result, screenOf(written.join(""))]).toEqual(["done", [long, "two", "lines", ""]]);
});

describe("a warning of the log", () => {
  /** What goes to stderr, if it is a terminal or not. */
  function logged(isTTY: boolean, json: boolean): string {
    const stderr = process.stderr as { isTTY: boolean | undefined };
    const before = stderr.isTTY;
    stderr.isTTY = isTTY;
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => {
      write.mockRestore();
      stderr.isTTY = before;
    });
    const { logTo } = createOutput({ json });
    if (logTo === "stderr") return logTo;
    const log = createLogger("warn", logTo).child({ source: "eu" });
    log.warn(
      { code: "rate_limited", reason: "GET https://x.example answered 429.\u009b2J", waitMs: 3000 },
      "held back",
    );
    return write.mock.calls.map(([line]) => String(line)).join("");
  }
  test("is a sentence on a terminal", () => {
    expect(logged(true, false)).toBe(
      "warning: eu: held back: GET https://x.example answered 429.\\u009b2J waitMs=3000 [rate_limited]\n",
    );
  });
  test("is JSON where stderr is no terminal, and with --json", () => {
    expect([logged(false, false), logged(true, true)]).toEqual(["stderr", "stderr"]);
  });
});

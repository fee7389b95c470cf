import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { limitLines } from "../../../../src/core/base/log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setupLog() {
  const lines: { at: number; code?: string; leftOut?: number; n?: number; msg?: string }[] = [];
  const start = performance.now();
  const log = pino(
    { base: null, hooks: { logMethod: limitLines(Date, (about) => log.warn(about, "lines left out")) } },
    { write: (line) => void lines.push({ ...JSON.parse(line), at: performance.now() - start }) },
  );
  return { log, lines };
}

test("at most 20 lines of a fault are logged in any minute, and all that were left out are counted", () => {
  const { log, lines } = setupLog();
  const one = log.child({ source: "one" });
  const other = log.child({ source: "other" });
  let sent = 0;
  for (let second = 0; second < 180; second++) {
    for (let n = 0; n < 10; n++) (sent++ % 2 ? one : other).warn({ code: "postgres_full" }, "job failed");
    vi.advanceTimersByTime(1_000);
  }
  for (let n = 0; n < 12; n++) {
    one.warn({ code: "postgres_full" }, "job failed");
    sent++;
    vi.advanceTimersByTime(20_000);
  }
  for (const { at } of lines) {
    expect(lines.filter((line) => line.at >= at && line.at < at + 60_000).length).toBeLessThanOrEqual(20);
  }
  const leftOut = lines.reduce((sum, line) => sum + (line.leftOut ?? 0), 0);
  expect(leftOut + lines.filter((line) => line.leftOut === undefined).length).toBe(sent);
  expect(lines[0]?.at).toBe(0);
  expect(lines.at(-1)).toMatchObject({ msg: "job failed" });
});

test("each fault has its own limit, and a line without a code has none", () => {
  const { log, lines } = setupLog();
  for (let n = 0; n < 100; n++) {
    log.warn({ code: "rate_limited" }, "held back");
    log.info({ n, code: "" }, "job");
    log.info("plain");
  }
  log.warn({ code: "timeout" }, "task not loaded");
  expect(lines.filter((line) => line.code === "rate_limited").length).toBe(19);
  expect(lines.filter((line) => line.code === "timeout").length).toBe(1);
  expect(lines.filter((line) => line.msg === "job").length).toBe(100);
  expect(lines.filter((line) => line.msg === "plain").length).toBe(100);
  vi.advanceTimersByTime(60_000);
  expect(lines.at(-1)).toMatchObject({ code: "rate_limited", leftOut: 81, msg: "lines left out" });
});

test.skipIf(!existsSync("/dev/full"))(
  "a log that cannot be written stops nothing and takes no memory",
  () => {
    const code = `
    const { createLogger } = await import(${JSON.stringify(new URL("../../../../src/core/base/log.ts", import.meta.url).href)});
    await import(${JSON.stringify(new URL("../../../../src/app/main.ts", import.meta.url).href)});
    const log = createLogger("info", "stderr");
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 20_000; i++) log.info({ text: "x".repeat(1000) }, "line");
    process.stderr.write("said\\n");
    setTimeout(() => process.stdout.write(String(process.memoryUsage().rss - before < 50e6)), 50);
  `;
    const full = openSync("/dev/full", "w");
    const { status, stdout } = spawnSync(
      process.execPath,
      ["--input-type=module", "-e", code, "--", "--version"],
      { stdio: ["ignore", "pipe", full], encoding: "utf8" },
    );
    closeSync(full);
    expect([status, stdout.endsWith("true")]).toEqual([0, true]);
  },
);

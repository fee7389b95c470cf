import { pino } from "pino";
import { beforeEach, expect, test } from "vitest";
import { createStoreGate } from "../../../jobs/pause-jobs.ts";
import { faultOf } from "../../../src/core/base/faults.ts";
import { poll } from "../../support/poll.ts";

const full = Object.assign(new Error("could not extend file"), { code: "53100" });
const refused = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" });

let now: number;
let waits: number[];
let failures: Error[];
let logs: Record<string, unknown>[];
beforeEach(() => {
  [now, waits, failures, logs] = [0, [], [], []];
});

function setupGate({ signal = new AbortController().signal } = {}) {
  return createStoreGate({
    tryWrite: async () => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
    },
    clock: {
      now: () => now,
      wait: async (ms, given) => {
        await new Promise((next) => setImmediate(next));
        given?.throwIfAborted();
        waits.push(ms);
        now += ms;
      },
    },
    log: pino({ level: "info", base: null }, { write: (line) => void logs.push(JSON.parse(line)) }),
    signal,
  });
}

test("nothing is asked while the store keeps nothing, and a cheap write finds out when it does again", async () => {
  const gate = setupGate();
  const changes: boolean[] = [];
  gate.onChange(() => changes.push(gate.isPaused()));
  gate.check();
  failures = Array.from({ length: 60 }, () => refused);
  expect(gate.note(full)).toBe(true);
  expect(() => gate.check()).toThrow("could not extend file");
  await poll(() => !gate.isPaused());
  gate.check();
  expect(changes).toEqual([true, false]);
  expect(waits).toHaveLength(61);
  waits.forEach((ms, n) => {
    expect(ms).toBeLessThanOrEqual(Math.min(5_000, 1000 * 2 ** n));
  });
  expect(Math.max(...waits)).toBeGreaterThan(3_000);
  // Each fault is said once, and so is the end.
  expect(logs.map((line) => line.code ?? line.msg)).toEqual([
    "postgres_full",
    "postgres_unreachable",
    "store writes again",
  ]);
});

test("an error that is not the store's absence leaves it open", () => {
  const gate = setupGate();
  for (const code of ["23514", "40P01", "57014", undefined]) {
    expect(gate.note(Object.assign(new Error("no"), { code }))).toBe(false);
  }
  expect(gate.isPaused()).toBe(false);
});

test("writes that the store did not take are made once it writes again", async () => {
  const gate = setupGate();
  const done: string[] = [];
  await gate.onceWritable(async () => void done.push("at once"));
  let isFirst = true;
  await gate.onceWritable(async () => {
    if (isFirst) {
      isFirst = false;
      throw refused;
    }
    done.push("first");
  });
  expect(gate.isPaused()).toBe(true);
  await gate.onceWritable(async () => void done.push("second"));
  expect(done).toEqual(["at once"]);
  await poll(() => !gate.isPaused());
  expect(done).toEqual(["at once", "first", "second"]);
});

test("a store that fails again soon is tried less and less often", async () => {
  const gate = setupGate();
  for (let n = 0; n < 40; n++) {
    gate.note(full);
    await poll(() => !gate.isPaused());
  }
  expect(Math.max(...waits)).toBeGreaterThan(3_000);
  now += 60_001;
  waits.length = 0;
  gate.note(full);
  await poll(() => !gate.isPaused());
  expect(waits[0]).toBeLessThanOrEqual(1_000);
});

test("a process that ends tries no more", async () => {
  const abort = new AbortController();
  const gate = setupGate(abort);
  gate.note(full);
  abort.abort(new Error("draining"));
  for (let turn = 0; turn < 5; turn++) await new Promise((next) => setImmediate(next));
  expect([gate.isPaused(), waits]).toEqual([true, []]);
});

test.each([
  ["53100", "", "postgres_full"],
  ["25006", "", "postgres_read_only"],
  ["57P03", "", "postgres_unreachable"],
  ["ECONNREFUSED", "", "postgres_unreachable"],
  ["40P01", "", "postgres_busy"],
  ["57014", "", "postgres_slow"],
  [undefined, "READONLY You can't write against a read only replica.", "redis_read_only"],
  [undefined, "OOM command not allowed when used memory > 'maxmemory'.", "redis_full"],
  [undefined, "Connection is closed.", "redis_unreachable"],
  ["23514", "violates check constraint", undefined],
])("an error %s %s is called %s", (code, message, name) => {
  expect(faultOf(Object.assign(new Error(message), code === undefined ? {} : { code }))?.code).toBe(name);
});

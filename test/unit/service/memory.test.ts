import { expect, test } from "vitest";
import { createLook } from "../../../src/service/memory.ts";

/** A process with `start` MB, of which each collection leaves `rest`. */
function processOf({ start, rest }: { start: number; rest: number }) {
  const now = { mb: start, cpuMs: 5_000, collections: 0 };
  const look = createLook({
    taken: () => ({ bytes: now.mb * 1e6, cpuMs: now.cpuMs }),
    collect: () => {
      now.collections++;
      now.mb = rest;
    },
  });
  return { now, look };
}

test("a process at rest gives back what starting took, and then nothing until it has grown", () => {
  const { now, look } = processOf({ start: 120, rest: 105 });
  look();
  expect(now).toMatchObject({ mb: 105, collections: 1 });
  for (const mb of [105, 110, 120]) {
    now.mb = mb;
    look();
  }
  expect(now.collections).toBe(1);
  now.mb = 122;
  look();
  expect(now).toMatchObject({ mb: 105, collections: 2 });
});

test("a process that works is left alone, until it rests", () => {
  const { now, look } = processOf({ start: 200, rest: 105 });
  now.cpuMs += 1_000;
  look();
  expect(now.collections).toBe(0);
  now.cpuMs += 999;
  look();
  expect(now.collections).toBe(1);
});

test("memory that a collection cannot give back is collected once", () => {
  const { now, look } = processOf({ start: 200, rest: 199 });
  for (let i = 0; i < 5; i++) look();
  expect(now.collections).toBe(1);
});

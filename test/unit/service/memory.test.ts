import { expect, test } from "vitest";
import { createLook } from "../../../src/service/memory.ts";

/** A process with `start` MB, of which each collection leaves `rest`. */
function processOf({ start, rest }: { start: number; rest: number }) {
  const now = { mb: start, cpuMs: 5_000, collected: [] as string[] };
  const look = createLook({
    taken: () => ({ bytes: now.mb * 1e6, cpuMs: now.cpuMs }),
    collect: ({ all }) => {
      now.collected.push(all ? "all" : "garbage");
      now.mb = rest;
    },
  });
  /** Looks as often as it takes to see whether a process rests, which takes so much processor time meanwhile. */
  const halfMinute = (cpuMs = 0) => {
    for (let n = 0; n < 6; n++) {
      now.cpuMs += cpuMs / 6;
      look();
    }
  };
  return { now, look, halfMinute };
}

test("a process at rest gives back what starting took, then code, and then nothing until it has grown", () => {
  const { now, look, halfMinute } = processOf({ start: 180, rest: 105 });
  look();
  expect(now).toMatchObject({ mb: 105, collected: ["garbage"] });
  now.mb = 110;
  halfMinute();
  expect(now).toMatchObject({ mb: 105, collected: ["garbage", "all"] });
  for (const mb of [105, 110, 120]) {
    now.mb = mb;
    halfMinute();
  }
  expect(now.collected).toHaveLength(2);
  now.mb = 122;
  halfMinute();
  expect(now).toMatchObject({ mb: 105, collected: ["garbage", "all", "all"] });
});

test("a process that works may grow by 64 MB", () => {
  const { now, halfMinute } = processOf({ start: 180, rest: 105 });
  halfMinute(1_000);
  expect(now.collected).toEqual(["garbage"]);
  now.mb = 168;
  halfMinute(1_000);
  expect(now.collected).toHaveLength(1);
  now.mb = 169;
  halfMinute(1_000);
  expect(now.collected).toEqual(["garbage", "garbage"]);
  now.mb = 110;
  halfMinute(999);
  expect(now.collected).toEqual(["garbage", "garbage", "all"]);
});

test("memory that a collection cannot give back is collected once", () => {
  const { now, halfMinute } = processOf({ start: 200, rest: 199 });
  for (let n = 0; n < 5; n++) halfMinute();
  expect(now.collected).toEqual(["garbage", "all"]);
  for (let n = 0; n < 5; n++) halfMinute(2_000);
  expect(now.collected).toHaveLength(2);
});

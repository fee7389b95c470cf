import { expect, test } from "vitest";
import { type Fault, schedule } from "../../chaos/world/fault.ts";

const begin = async () => async () => {};
const FAULTS: Fault[] = ["redis", "postgres", "platform"].flatMap((on) =>
  [5, 20].map((forS) => ({
    name: `${on} ${forS}`,
    on: on as Fault["on"],
    begin,
    forS,
    withinS: 30,
    isRandom: true,
  })),
);

test("a seed gives the same faults again, another seed gives others", () => {
  const [one, again, other] = [7, 7, 8].map((seed) => schedule(seed, 600_000, FAULTS));
  expect(again).toEqual(one);
  expect(other).not.toEqual(one);
});

test("faults overlap, but no two strike one target at once", () => {
  const planned = schedule(7, 3_600_000, FAULTS);
  const pairs = planned.flatMap((one, i) =>
    planned
      .slice(i + 1)
      .filter((next) => next.at < one.at + one.forMs)
      .map((next) => [one, next] as const),
  );
  expect(pairs.length).toBeGreaterThan(50);
  expect(pairs.filter(([one, next]) => one.fault.on === next.fault.on)).toEqual([]);
});

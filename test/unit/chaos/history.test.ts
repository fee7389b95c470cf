import { expect, test } from "vitest";
import { type Event, violationsOf } from "../../chaos/world/history.ts";

/** The checker of `npm run chaos`, on histories made by hand. Times in seconds. */

const KEY = "workspace day 2026-11-20 w w";

function answerable(at: number, traces: number): Event {
  return { at: at * 1_000, kind: "answerable", key: KEY, traces };
}

function shown(
  at: number,
  traces: number | null,
  fetchNumber: number | null,
  fetchedAt: number | null,
): Event {
  const asked = fetchedAt === null ? null : fetchedAt * 1_000;
  return { at: at * 1_000, kind: "shown", key: KEY, traces, fetchNumber, fetchedAt: asked };
}

const TWO_VERSIONS = [answerable(10, 5), answerable(20, 7)];

test.each<[what: string, events: Event[]]>([
  [
    "a figure that was answered between its request and now",
    [...TWO_VERSIONS, shown(22, 5, 1, 19), shown(25, 7, 2, 24)],
  ],
  [
    "an older figure of a later request that was sent before the change",
    [...TWO_VERSIONS, shown(30, 5, 1, 15)],
  ],
  ["nothing, before anything was loaded", [answerable(10, 5), shown(11, null, null, null)]],
  ["a zero of before the first figure", [shown(5, 0, 1, 4), answerable(10, 5)]],
  ["a zero where the platform has nothing", [shown(5, 0, 1, 4)]],
])("holds: %s", (_, events) => {
  expect(violationsOf(events)).toEqual([]);
});

test.each<[what: string, events: Event[], message: string]>([
  [
    "a figure that the platform never had",
    [...TWO_VERSIONS, shown(30, 6, 1, 15)],
    "the platform had 0, 5, 7",
  ],
  ["half of an answer", [answerable(10, 5), shown(12, 2, 1, 11)], "the platform had 0, 5"],
  [
    "a figure that was outdated before it was asked for",
    [...TWO_VERSIONS, shown(30, 5, 1, 25)],
    "5 of fetch 1",
  ],
  ["a zero by an answer that had more", [answerable(10, 5), shown(30, 0, 1, 25)], "0 of fetch 1"],
  [
    "an older answer after a newer one",
    [...TWO_VERSIONS, shown(22, 7, 9, 21), shown(30, 7, 8, 20)],
    "after fetch 9",
  ],
  ["records without coverage", [answerable(10, 5), shown(12, 5, null, null)], "without coverage"],
  [
    "a command that said too much",
    [
      {
        at: 1,
        kind: "command",
        args: "backfill",
        code: 0,
        wrong: "ended with 0, and of its range 4 are missing",
      },
    ],
    "4 are missing",
  ],
])("is found: %s", (_, events, message) => {
  expect(violationsOf(events)).toEqual([expect.stringContaining(message)]);
});

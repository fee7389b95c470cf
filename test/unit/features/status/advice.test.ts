import { expect, test } from "vitest";
import { adviseOn, type Situation } from "../../../../src/features/status/advice.ts";

const CALM: Situation = {
  source: "default",
  sourceFlags: "",
  trust: {
    source: "default",
    dataStart: "2026-02-10",
    today: "2026-04-20",
    finalUntil: "2026-04-17",
    provedUntil: "2026-04-17",
    comparedUntil: "2026-04-17",
    reconciledUntil: "2026-04-17",
    gapDays: 0,
    idleDays: 0,
    firstIdle: null,
    lastIdle: null,
    failedDays: 0,
    leftOutDays: 0,
    neverReadDays: 0,
    otherGaps: [],
    unknownMeters: [],
    disagreements: 0,
    disagreementsSince: 0,
    workspaceIds: ["00000000-0000-4000-8000-000000000001"],
    capabilities: [],
    meters: [["traces", Date.parse("2026-02-10")]],
    closedMonth: "2026-03-01",
    monthsNotClosed: 0,
    nextMonth: "2026-04-01",
    nextLacksPrice: false,
  },
  refused: null,
  workers: 1,
  redis: null,
  stale: null,
  lastSyncFailure: null,
  openDifferences: 0,
  unread: [],
  neverRead: [],
  unpriced: false,
  nextSync: "2026-04-20T10:15:00.000Z",
};
const LEFT_OUT = { ...CALM.trust, gapDays: 8, leftOutDays: 8 };
const SINCE = { ...LEFT_OUT, disagreementsSince: 1 };
const DISPUTED = { ...SINCE, disagreements: 2, closedMonth: "2026-02-01" };
const LOADING = { ...CALM.trust, gapDays: 3 };
const GAP = { ...LOADING, idleDays: 2, firstIdle: "2026-04-03", lastIdle: "2026-04-04" };

test.each<[string, Partial<Situation>, string, string | undefined]>([
  ["nothing", {}, "Nothing: every day that has ended is loaded. The next sync is at 10:15.", undefined],
  [
    "final days that no service compares",
    { trust: { ...LEFT_OUT, provedUntil: "2026-04-08", comparedUntil: "2026-04-10" }, nextSync: null },
    "2026-04-10 is the first day that is final and not compared. Compare days with the export.",
    "usage-etl reconcile --from 2026-04-10 --to 2026-04-20",
  ],
  [
    "a contradiction in a closed month that nobody accepted",
    { trust: { ...SINCE, comparedUntil: "2026-04-10" }, nextSync: null },
    "contradicts itself on 1 count of closed months, found since they were closed. Contact its support.",
    undefined,
  ],
  [
    "a month to close",
    { trust: { ...CALM.trust, closedMonth: null, nextMonth: "2026-02-01" } },
    "2026-02 is final and reconciled. Close it.",
    "usage-etl close 2026-02",
  ],
  [
    "a workspace that nothing ever proved readable",
    {
      neverRead: [{ workspaceId: "w1", name: "Acme" }],
      trust: { ...CALM.trust, closedMonth: null, nextMonth: "2026-02-01", gapDays: 8, neverReadDays: 8 },
    },
    "The usage of 1 workspace is not known, because nothing shows that the key reads it: Acme (w1).",
    "usage-etl workspace list",
  ],
  ["no price", { unpriced: true }, "Some usage has no price", "usage-etl prices import FILE"],
  ["a contradiction", { unpriced: true, trust: DISPUTED }, "2 differences keep", undefined],
  [
    "a difference",
    { trust: DISPUTED, openDifferences: 1 },
    "1 count differs from the export",
    "usage-etl reconcile --from 2026-02-10 --to 2026-04-20 --repair",
  ],
  [
    "days that are being loaded",
    { openDifferences: 1, trust: LOADING },
    "3 daily figures are being loaded. Wait for them.",
    "usage-etl status",
  ],
  [
    "a gap",
    { openDifferences: 1, trust: GAP },
    "2 daily figures are not loaded, from 2026-04-03 to 2026-04-04. Load them. 1 more is being loaded.",
    "usage-etl backfill --from 2026-04-03 --to 2026-04-05",
  ],
  [
    "a lost workspace",
    { trust: GAP, unread: ["w1", "w2", "w3"] },
    "The key lost access to workspace w1 and 2 more. Restore it: the next sync loads what is missing.",
    "usage-etl doctor",
  ],
  [
    "a failed sync",
    { trust: GAP, lastSyncFailure: "No response." },
    "The last sync failed. No response.",
    "usage-etl runs list",
  ],
  [
    "a stale source",
    { lastSyncFailure: "No response.", stale: "Nothing was loaded for 5 h." },
    "Nothing was loaded for 5 h. Find out why.",
    "usage-etl status",
  ],
  [
    "no worker",
    { stale: "Nothing was loaded for 5 h.", workers: 0 },
    "No process fetches",
    "usage-etl serve",
  ],
  ["a refused key", { redis: "away", refused: "401" }, "The platform refuses the key", "usage-etl doctor"],
])("%s", (_what, changes, sentence, command) => {
  const advice = adviseOn({ ...CALM, ...changes });
  expect(advice.sentence).toContain(sentence);
  expect(advice.command).toBe(command);
});

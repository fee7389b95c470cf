import { expect, test } from "vitest";
import { describeLimit, type LimitUse, marksPassed } from "../../../src/domain/bill/usage-limit.ts";

const USE: LimitUse = {
  ...{ workspaceId: "w", workspaceName: "Research", limitType: "monthly_traces", value: 20_000 },
  ...{ isRejecting: false, month: "2026-03-01", traces: 12_000, isComplete: true, daysFinal: 9 },
  ...{ percent: 60, reachedOn: "2026-03-16", readAt: "2026-03-10T00:00:00Z" },
};

test.each([
  [null, 0],
  [0, 0],
  [49.99, 0],
  [50, 1],
  [74.99, 1],
  [75, 2],
  [90, 3],
  [99.99, 3],
  [100, 4],
  [250, 4],
])("%s percent is past %i marks", (percent, marks) => {
  expect(marksPassed({ percent })).toBe(marks);
});

const NAME = "Monthly limit of traces, workspace Research:";
test.each<[string, Partial<LimitUse>, string]>([
  [
    "a day on which it is reached",
    {},
    `${NAME} 12,000 of 20,000 traces (60 %) in 2026-03. At the pace of the 9 final days it is reached on 2026-03-16.`,
  ],
  [
    "not this month",
    { reachedOn: null, daysFinal: 1 },
    `${NAME} 12,000 of 20,000 traces (60 %) in 2026-03. At the pace of the 1 final day it is not reached this month.`,
  ],
  [
    "no pace without a final day",
    { reachedOn: null, daysFinal: 0 },
    `${NAME} 12,000 of 20,000 traces (60 %) in 2026-03.`,
  ],
  [
    "days that are not loaded",
    { isComplete: false, reachedOn: null, daysFinal: 0 },
    `${NAME} at least 12,000 of 20,000 traces (60 %) in 2026-03.`,
  ],
  [
    "a percentage that is rounded down, so that 100 is all of it",
    { traces: 19_999, percent: 99.995 },
    `${NAME} 19,999 of 20,000 traces (99.9 %) in 2026-03. At the pace of the 9 final days it is reached on 2026-03-16.`,
  ],
  [
    "a limit that is reached",
    { traces: 20_000, percent: 100 },
    `${NAME} 20,000 of 20,000 traces (100 %) in 2026-03. It is reached.`,
  ],
  [
    "a platform that rejects, with usage",
    { traces: 20_001, percent: 100.005, isRejecting: true },
    `${NAME} 20,001 of 20,000 traces (100 %) in 2026-03. It is reached. The platform rejects its traces now.`,
  ],
  [
    "of the organization, without a limit",
    { workspaceId: "(all)", workspaceName: null, value: null, isRejecting: true },
    "Monthly limit of traces, whole organization: no limit. The platform rejects its traces now.",
  ],
  ["no limit", { value: null, traces: null, percent: null }, `${NAME} no limit.`],
  [
    "a workspace without a name, and usage that is not known",
    { workspaceName: null, limitType: "seats", traces: null, percent: null },
    "Limit seats, workspace w: 20,000; its usage is not known here.",
  ],
  ["traces without a percentage", { percent: null }, `${NAME} 20,000; its usage is not known here.`],
  [
    "a platform that rejects, without known usage",
    { traces: null, isRejecting: true },
    `${NAME} 20,000; its usage is not known here. The platform rejects its traces now.`,
  ],
])("a limit is described with %s", (_, given, text) => {
  expect(describeLimit({ ...USE, ...given })).toBe(text);
});

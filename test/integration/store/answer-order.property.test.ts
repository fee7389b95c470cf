import fc from "fast-check";
import { expect, test } from "vitest";
import { planTasks } from "../../../src/domain/planning/plan-tasks.ts";
import { workspaceIdsOf } from "../../../src/domain/planning/request.ts";
import { ALL_TIME, subtract } from "../../../src/domain/time/intervals.ts";
import { DAY_MS, HOUR_MS, STRIDE_MS, type Stride } from "../../../src/domain/time/stride.ts";
import type { GroupBy } from "../../../src/domain/usage/record.ts";
import { scopeStates } from "../../../src/store/catalog/scopes.ts";
import { times } from "../../support/drawn.ts";
import { type Question, windowOf, workspacesOf } from "./model/commands.ts";
import { History, SETTLE_AFTER_MS } from "./model/history.ts";
import { bucketsOf, type ModelAnswer, type ModelRecord } from "./model/model.ts";
import { FIRST_DAY, setupStore } from "./setup.ts";

// Rule 16 of docs/rules.md to its end: whatever came late, twice or never, the next sync asks for what is required, and then the store
// has the records of the platform. What each single step leaves is the model's (model/model.property.test.ts).

const BEGUN_AT = FIRST_DAY + 2 * DAY_MS + 22 * HOUR_MS;
const strides = fc.constantFrom<Stride[]>("hour", "day");
const groupings = fc.constantFrom<GroupBy[]>("workspace", "project");

const listed = ["w1", "w2", "w3"].map((id) => ({ id, name: null, isDeleted: false }));

/** The platform's records: a count grows while it is provisional, and never changes afterwards. */
function counted(asked: Omit<ModelAnswer, "records">, salt: number): ModelRecord[] {
  const { workspaceIds, groupBy, stride, fetchNumber, fetchedAt } = asked;
  return bucketsOf(asked).flatMap((bucket) =>
    workspaceIds.map((workspaceId) => {
      const truth = 10 + (((bucket / HOUR_MS) * 31 + workspaceId.charCodeAt(1) * 7 + salt) % 23);
      const isFinal = bucket + STRIDE_MS[stride] + SETTLE_AFTER_MS <= fetchedAt;
      const id = groupBy === "workspace" ? workspaceId : "";
      return { workspaceId, id, name: null, bucket, traces: isFinal ? truth : truth - (fetchNumber % 5) };
    }),
  );
}

type Asked = Question & { readonly after: number };

const meeting: fc.Arbitrary<Asked[]> = fc.array(
  fc.record({
    stride: strides,
    groupBy: groupings,
    at: fc.nat(3),
    length: fc.nat(2),
    workspaces: fc.integer({ min: 1, max: 7 }),
    after: fc.constantFrom(1_000, 5 * HOUR_MS, DAY_MS),
  }),
  { minLength: 2, maxLength: 10 },
);

test("overlapping windows in any order, some lost, end in the platform's records once required time is fetched", async () => {
  const bundle = await setupStore();
  const holds = async (questions: Asked[], picks: number[], salt: number) => {
    const past = await History.begin(bundle);
    await past.list(listed, 0);
    let fetchedAt = BEGUN_AT;
    const answers = questions.map((question, i) => {
      fetchedAt += question.after;
      const stamp = { fetchNumber: i + 1, fetchedAt };
      return { ...windowOf(question), ...question, workspaceIds: workspacesOf(question), ...stamp };
    });
    for (const pick of picks) {
      const asked = answers[pick % answers.length];
      if (asked !== undefined) await past.load({ ...asked, records: counted(asked, salt) });
    }
    // One sync of the required time, late enough to settle all of it.
    const late = fetchedAt + 10 * DAY_MS;
    const wanted = [
      { stride: "day" as const, range: { start: FIRST_DAY, end: FIRST_DAY + 6 * DAY_MS } },
      { stride: "hour" as const, range: { start: FIRST_DAY, end: FIRST_DAY + 2 * DAY_MS } },
    ];
    const required = async () => {
      const states = await scopeStates(bundle.store.db, {
        sourceId: past.sourceId,
        groupings: ["workspace", "project"],
        strides: ["hour", "day"],
      });
      const scopes = states.map((state) => ({
        ...state,
        missing: subtract(
          [ALL_TIME],
          state.coverage.filter((part) => part.final),
        ),
      }));
      return planTasks({ meter: "traces", scopes, wanted, dataStart: FIRST_DAY });
    };
    for (const [i, request] of (await required()).entries()) {
      const { groupBy, window } = request;
      const workspaceIds = workspaceIdsOf(request);
      const asked = { ...window, groupBy, workspaceIds, fetchNumber: 100 + i, fetchedAt: late };
      const { outcome } = await past.load({ ...asked, records: counted(asked, salt) });
      expect(outcome).toBe("loaded");
    }
    expect(await required()).toEqual([]);
    const { record = [] } = await past.lines();
    const expected = wanted.flatMap(({ stride, range }) =>
      (["workspace", "project"] as const).flatMap((groupBy) =>
        counted(
          { ...range, stride, groupBy, workspaceIds: ["w1", "w2", "w3"], fetchNumber: 0, fetchedAt: late },
          salt,
        ).map(({ workspaceId, id, bucket, traces }) =>
          [stride, groupBy, workspaceId, id, new Date(bucket).toISOString(), traces].join(" "),
        ),
      ),
    );
    expect(record).toEqual(expected.sort());
  };
  await fc.assert(fc.asyncProperty(meeting, fc.array(fc.nat(20), { maxLength: 12 }), fc.nat(1_000), holds), {
    numRuns: times(3),
  });
});

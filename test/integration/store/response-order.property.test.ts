import fc from "fast-check";
import { expect, test } from "vitest";
import { planTasks } from "../../../src/core/domain/planning/plan-tasks.ts";
import { workspaceIdsOf } from "../../../src/core/domain/planning/request.ts";
import { ALL_TIME, subtract } from "../../../src/core/domain/time/intervals.ts";
import { DAY_MS, HOUR_MS, STRIDE_MS, type Stride } from "../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../src/core/domain/usage/record.ts";
import { scopeStates } from "../../../src/core/store/catalog/scopes.ts";
import { times } from "../../support/drawn.ts";
import { type Question, recordsOf, WORKSPACES, windowOf, workspacesOf } from "./model/commands.ts";
import { History, SETTLE_AFTER_MS } from "./model/history.ts";
import type { Lines } from "./model/lines.ts";
import { bucketsOf, type ModelRecord, type ModelResponse } from "./model/model.ts";
import { FIRST_DAY, setupStore } from "./setup.ts";

// Rule 16 of docs/rules.md, where it holds exactly: access to the workspaces is proven throughout, and no response
// causes a full-window deletion. Those two cases depend on what is known at the time of the load, and are fetched again.

const BEGUN_AT = FIRST_DAY + 2 * DAY_MS + 22 * HOUR_MS;
const strides = fc.constantFrom<Stride[]>("hour", "day");
const groupings = fc.constantFrom<GroupBy[]>("workspace", "project");

interface Delivery {
  readonly response: ModelResponse;
  readonly failed: boolean;
}

/** Responds with their numbers and times. Each window has one unit, so that two windows are equal or disjoint. */
const tiles = fc
  .array(
    fc.record({
      stride: strides,
      groupBy: groupings,
      at: fc.nat(2),
      workspaces: fc.constantFrom(0b001, 0b110),
      ids: fc.array(fc.constantFrom("", "p1", "p2"), { maxLength: 3 }),
      traces: fc.nat(3),
      after: fc.constantFrom(1_000, 5 * HOUR_MS),
      failed: fc.boolean(),
    }),
    { minLength: 2, maxLength: 8 },
  )
  .map((questions) => {
    let fetchedAt = BEGUN_AT;
    return questions.map(({ ids, traces, after, failed, ...requested }, i): Delivery => {
      fetchedAt += after;
      const question = { ...requested, length: 0 };
      const rows = ["base", ...ids].flatMap((id) =>
        [0, 1].map((workspace) => ({
          workspace,
          bucket: 0,
          id,
          name: `${id} ${traces}`,
          traces: traces + 1,
        })),
      );
      const response = {
        ...windowOf(question),
        groupBy: requested.groupBy,
        workspaceIds: workspacesOf(question),
      };
      const records = recordsOf(question, rows);
      return { response: { ...response, records, fetchNumber: i + 1, fetchedAt }, failed };
    });
  });

function orderOf(length: number): fc.Arbitrary<number[]> {
  const all = Array.from({ length }, (_, i) => i);
  return fc
    .array(fc.nat(length - 1), { maxLength: 3 })
    .chain((doubled) => fc.shuffledSubarray([...all, ...doubled], { minLength: length + doubled.length }));
}

test("answers for the same windows give the same tables and views in any order", async () => {
  const bundle = await setupStore();
  const deliver = async (deliveries: readonly Delivery[], order: readonly number[]): Promise<Lines> => {
    const past = await History.begin(bundle);
    await past.list(listed, 0);
    await past.name(WORKSPACES, 0, { isStatistics: true });
    for (const i of order) {
      const { response, failed } = deliveries[i] as Delivery;
      if (failed) await past.fail(response);
      else await past.load(response);
    }
    return orderless(await past.lines());
  };
  const twoOrders = tiles.chain((deliveries) =>
    fc.tuple(fc.constant(deliveries), orderOf(deliveries.length), orderOf(deliveries.length)),
  );
  await fc.assert(
    fc.asyncProperty(twoOrders, async ([deliveries, one, other]) => {
      expect(await deliver(deliveries, one)).toEqual(await deliver(deliveries, other));
    }),
    { numRuns: times(3) },
  );
});

const listed = WORKSPACES.map((id) => ({ id, name: null, isDeleted: false }));

function orderless(lines: Lines): Lines {
  const { restatement, "view usage_restatement": _, failure = [], ...rest } = lines;
  const withoutAttempts = failure.map((line) => line.split(" ").toSpliced(7, 1).toSpliced(4, 1).join(" "));
  return { ...rest, failure: withoutAttempts.sort() };
}

function counted(requested: Omit<ModelResponse, "records">, salt: number): ModelRecord[] {
  const { workspaceIds, groupBy, stride, fetchNumber, fetchedAt } = requested;
  return bucketsOf(requested).flatMap((bucket) =>
    workspaceIds.map((workspaceId) => {
      const truth = 10 + (((bucket / HOUR_MS) * 31 + workspaceId.charCodeAt(1) * 7 + salt) % 23);
      const isFinal = bucket + STRIDE_MS[stride] + SETTLE_AFTER_MS <= fetchedAt;
      const id = groupBy === "workspace" ? workspaceId : "";
      return { workspaceId, id, name: null, bucket, traces: isFinal ? truth : truth - (fetchNumber % 5) };
    }),
  );
}

type Requested = Question & { readonly after: number };

const meeting: fc.Arbitrary<Requested[]> = fc.array(
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
  const holds = async (questions: Requested[], picks: number[], salt: number) => {
    const past = await History.begin(bundle);
    await past.list(listed, 0);
    await past.name(WORKSPACES, 0, { isStatistics: true });
    let fetchedAt = BEGUN_AT;
    const responses = questions.map((question, i) => {
      fetchedAt += question.after;
      const fetchToken = { fetchNumber: i + 1, fetchedAt };
      return { ...windowOf(question), ...question, workspaceIds: workspacesOf(question), ...fetchToken };
    });
    for (const pick of picks) {
      const requested = responses[pick % responses.length];
      if (requested !== undefined) await past.load({ ...requested, records: counted(requested, salt) });
    }
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
      const requested = { ...window, groupBy, workspaceIds, fetchNumber: 100 + i, fetchedAt: late };
      const { outcome } = await past.load({ ...requested, records: counted(requested, salt) });
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

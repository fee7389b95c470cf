import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Stride } from "../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../src/core/domain/usage/record.ts";
import { bindOrganization, registerSource } from "../../../src/core/store/catalog/sources.ts";
import type { LoadResult } from "../../../src/core/store/load/load.ts";
import { poll } from "../../support/poll.ts";
import { lockWaits } from "../../support/store.ts";
import { NAMES, type Question, type Row, WORKSPACES } from "./model/commands.ts";
import { History } from "./model/history.ts";
import type { ModelResponse } from "./model/model.ts";
import { intercepted, pausedAt } from "./model/statements.ts";
import { type StoreBundle, setupStore } from "./setup.ts";

// Loads on several connections at once. They must report and store what sequential loads would.

const question: Question = { groupBy: "project", stride: "day", at: 0, length: 2, workspaces: 0b001 };

describe.each(["loaded before", "not loaded before"])("of two responses to one question, %s", (before) => {
  test.each(["older", "newer"])("the newer one wins if the %s one pauses at any statement", async (first) => {
    const bundle = await setupStore();
    for (let at = 1, stopped = true; stopped; at++) {
      const { past, withBase } = await begin(bundle);
      if (before === "loaded before") await settle(past, await withBase(question, at));
      const older = await withBase(question, at);
      const newer = await withBase(question, at + 1);
      const [standing, running] = first === "older" ? [older, newer] : [newer, older];

      const paused = await pausedAt(at, () => past.load(standing));
      stopped = paused.stopped;
      let isOver = false;
      const run = past.load(running).finally(() => {
        isOver = true;
      });
      await poll(async () => isOver || (await lockWaits(bundle.store)) > 0);
      paused.goOn();
      const [result, other] = await Promise.all([paused.result, run]);
      settleAll(past, [standing, running], [result, other]);
      expect((first === "older" ? other : result).outcome).toBe("loaded");
      await past.check();
    }
  });
});

test("a load that pauses at any statement blocks no other dimension of its workspace, and no listing", async () => {
  const bundle = await setupStore();
  for (let at = 1, stopped = true; stopped; at++) {
    const { past, withBase } = await begin(bundle);
    const standing = await withBase(question, at);
    const other = await withBase({ ...question, groupBy: "user" }, at);
    const paused = await pausedAt(at, () => past.load(standing));
    stopped = paused.stopped;
    let isOver = false;
    const run = past.load(other).finally(() => {
      isOver = true;
    });
    await poll(() => isOver);
    await past.list([{ id: "w1", name: "One", isDeleted: false }], 0);
    paused.goOn();
    settleAll(past, [standing, other], await Promise.all([paused.result, run]));
    await past.check();
  }
});

test("the newer of two racing answers always wins", async () => {
  const { past, withBase } = await begin(await setupStore());
  for (let round = 0; round < 40; round++) {
    const requested = { ...question, at: round % 3, length: round % 2 };
    const responses = [await withBase(requested, 2 * round), await withBase(requested, 2 * round + 1)];
    if (round % 4 < 2) responses.reverse();
    const results = await Promise.all(responses.map((response) => past.load(response)));
    settleAll(past, responses, results);
    await past.check();
  }
});

const batch = fc.record({
  groupBy: fc.constantFrom<GroupBy[]>("workspace", "project"),
  stride: fc.constantFrom<Stride[]>("hour", "day"),
  at: fc.nat(2),
  length: fc.nat(2),
  workspaces: fc.constantFrom(0b011, 0b110, 0b101, 0b111),
});
/** Batches in the order of their requests, each with its position in the order of delivery. */
const crowd = fc.array(fc.tuple(batch, fc.nat()), { minLength: 48, maxLength: 48 });

test("four connections load overlapping batches correctly while workspaces are listed and renamed", async () => {
  const bundle = await setupStore({ maxConnections: 4 });
  const errors: unknown[] = [];
  const holds = async (questions: [Question, number][]) => {
    const { past, withBase } = await begin(bundle);
    const requested: { response: ModelResponse; place: number }[] = [];
    for (const [question, place] of questions) {
      requested.push({ response: await withBase(question, requested.length), place });
    }
    const waiting = requested.toSorted((a, b) => a.place - b.place).map(({ response }) => response);
    const results = new Map<ModelResponse, LoadResult>();
    const work = async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        results.set(next, await past.load(next));
        if (waiting.length % 6 === 0) await past.list(listed(waiting.length), 0);
      }
    };
    // The store would retry after a deadlock, but each one costs a second.
    const failed = (error: unknown) => void errors.push(error);
    await intercepted({ failed }, () => Promise.all([work(), work(), work(), work()]));
    settleAll(past, [...results.keys()], [...results.values()]);
    await past.check();
  };
  await fc.assert(fc.asyncProperty(crowd, holds), { numRuns: 3, endOnFailure: true });
  expect(errors).toEqual([]);
});

test("two processes that contact a new source at once do not deadlock", async () => {
  const bundle = await setupStore();
  const { store } = bundle;
  const settings = { baseUrl: "http://localhost", dataStart: "2026-01-01", hourlyHours: 24 };
  const register = () => registerSource(store, { slug: "one", ...settings, configurationDigest: "" });
  const sourceId = await register();
  const bind = () =>
    bindOrganization(store, { sourceId, organizationId: "o", organizationName: null, workspaceIds: ["w"] });
  const failed: unknown[] = [];
  const orders: [() => Promise<unknown>, () => Promise<unknown>][] = [
    [register, bind],
    [bind, register],
  ];
  for (const [standing, running] of orders) {
    for (let at = 1, stopped = true; stopped; at++) {
      const paused = await pausedAt<unknown>(at, standing, (error) => failed.push(error));
      stopped = paused.stopped;
      let isOver = false;
      const run = intercepted({ failed: (error) => failed.push(error) }, running).finally(() => {
        isOver = true;
      });
      await poll(async () => isOver || (await lockWaits(bundle.store)) > 0);
      paused.goOn();
      await Promise.all([paused.result, run]);
    }
  }
  expect(failed).toEqual([]);
});

/** Responses that never cause a full-window deletion: each names the same project in every bucket. */
async function begin(bundle: StoreBundle) {
  const past = await History.begin(bundle);
  await past.list(listed(0), 0);
  await past.name(WORKSPACES, 0);
  const withBase = (requested: Question, n: number) => {
    const rows = WORKSPACES.flatMap((_, workspace) =>
      Array.from({ length: 18 }, (__, bucket): Row[] => [
        { workspace, bucket, id: "base", name: NAMES[n % NAMES.length] ?? null, traces: n + 1 },
        { workspace, bucket, id: `p${(n * 7 + bucket) % 5}`, name: null, traces: bucket },
      ]).flat(),
    );
    return past.request(requested, rows, 1_000);
  };
  return { past, withBase };
}

function listed(n: number): { id: string; name: string; isDeleted: boolean }[] {
  return WORKSPACES.map((id, i) => ({ id, name: `Workspace ${(n + i) % 4}`, isDeleted: false }));
}

async function settle(past: History, response: ModelResponse): Promise<void> {
  past.happened(response, await past.load(response));
}

/** Applies to the model the responses that were loaded, in order of their numbers: overlapping loads have that order. */
function settleAll(past: History, responses: readonly ModelResponse[], results: readonly LoadResult[]): void {
  const both = responses.map((response, i) => ({ response, result: results[i] as LoadResult }));
  both.sort((a, b) => a.response.fetchNumber - b.response.fetchNumber);
  for (const { response, result } of both) if (result.outcome === "loaded") past.happened(response, result);
  // A discarded answer has met a newer one.
  for (const { response, result } of both) if (result.outcome !== "loaded") past.happened(response, result);
}

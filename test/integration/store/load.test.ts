import { beforeEach, describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, type Stride } from "../../../src/domain/time/stride.ts";
import { AnswerCollector } from "../../../src/domain/usage/answer.ts";
import { scopesOf } from "../../../src/store/catalog/scopes.ts";
import { applyListing } from "../../../src/store/catalog/workspaces.ts";
import { failScopes } from "../../../src/store/load/failures.ts";
import { drawStamp } from "../../../src/store/load/fetch-ledger.ts";
import { type Load, type LoadResult, loadAnswer } from "../../../src/store/load/load.ts";
import { proveAccess } from "../../support/store.ts";
import { FIRST_DAY, type StoreBundle, setupSource } from "./setup.ts";

/** What a load returns and stores, one rule at a time. The model (model/model.property.test.ts) checks all of them together. */

const [A, B] = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
const NOTHING = { inserted: 0, updated: 0, retired: 0, unchanged: 0, restated: 0, fullyDeleted: [] };
/** Of the first three days: bucket, workspace, project, traces. */
type Row = readonly [day: number, workspaceId: string, id: string, traces: number];

let bundle: StoreBundle & { sourceId: number };

beforeEach(async () => {
  bundle = await setupSource({ workspaceIds: [A, B], dataStart: FIRST_DAY });
});

const at = (day: number) => FIRST_DAY + day * DAY_MS;
const windowOf = (from: number, to: number, stride: Stride = "day") => ({
  stride,
  start: at(from),
  end: at(to),
});

async function load(
  rows: readonly Row[],
  {
    window = windowOf(0, 3),
    workspaces = [A, B],
    ...options
  }: Partial<Load> & { workspaces?: readonly string[] } = {},
): Promise<LoadResult> {
  const { store, sourceId } = bundle;
  const answer = new AnswerCollector({ window, groupBy: "project", workspaceIds: workspaces });
  answer.add(
    rows.map(([day, workspaceId, dimensionId, traces]) => ({
      bucketStart: at(day),
      workspaceId,
      dimensionId,
      dimensionName: null,
      traces,
    })),
  );
  const { meter } = options;
  const scopes = {
    sourceId,
    meter,
    groupBy: "project" as const,
    stride: window.stride,
    workspaceIds: workspaces,
  };
  return loadAnswer(store, {
    sourceId,
    meter: "traces",
    groupBy: "project",
    window,
    answer,
    settleAfterMs: 0,
    stamp: options.stamp ?? (await drawStamp(store.db)),
    scopeIds: await scopesOf(store.db, scopes),
    ...options,
  });
}

const lines = async (text: string) =>
  (await bundle.reader.query<string[]>({ text, rowMode: "array" })).rows.map((row) => row.join(" "));
const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const DAYS = [0, 1, 2, 3].map((n) => day(at(n)));
/** Workspace, project, day and traces of what is stored. */
const stored = async () =>
  (
    await lines(
      `SELECT left(w.external_id, 1), e.external_id, r.bucket_start, r.traces FROM usage.dated_record r
       JOIN usage.series s USING (series_id) JOIN usage.trace_scope c USING (scope_id)
       JOIN usage.entity w ON w.entity_id = c.workspace_id JOIN usage.entity e ON e.entity_id = s.entity_id
       ORDER BY 1, 2, 3`,
    )
  ).map((line) => DAYS.reduce((text, one, n) => text.replace(one, `day${n}`), line));
/** Workspace, first day, days and whether they are final. */
const covered = async (extra = "") =>
  (
    await lines(
      `SELECT left(w.external_id, 1), (v.period_start AT TIME ZONE 'UTC')::date,
              extract(epoch FROM v.period_end - v.period_start)::integer / 86400, v.final ${extra}
       FROM usage.coverage v JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id
       ORDER BY 1, 2`,
    )
  ).map((line) => DAYS.reduce((text, one, n) => text.replace(one, `day${n}`), line));
const months = () =>
  lines(
    `SELECT sum(traces), sum(records) FROM usage.monthly_total JOIN usage.series USING (series_id)
     JOIN usage.trace_scope USING (scope_id) WHERE stride = 'day'`,
  );
const restated = () =>
  lines(
    "SELECT coalesce(old_traces::text, '-'), coalesce(new_traces::text, '-') FROM usage.restatement ORDER BY 1, 2",
  );

describe("a window that was loaded before", () => {
  const FIRST: Row[] = [
    [0, A, "p", 5],
    [1, A, "p", 6],
    [2, A, "q", 7],
    [0, B, "r", 8],
  ];

  test("is replaced: every change is counted, stored, and a restatement where it was final", async () => {
    expect(await load(FIRST)).toEqual({ outcome: "loaded", ...NOTHING, inserted: 4, unverified: [] });
    expect(await months()).toEqual(["26 4"]);
    const again = await load([
      [0, A, "p", 5],
      [1, A, "p", 9],
      [2, A, "p", 1],
      [1, A, "s", 2],
      [1, B, "r", 0],
      [0, B, "r", 8],
    ]);
    const counts = { inserted: 3, updated: 1, retired: 1, unchanged: 2 };
    // A new count of 0 changes no figure.
    expect(again).toEqual({ outcome: "loaded", ...NOTHING, ...counts, restated: 4, unverified: [] });
    expect(await stored()).toEqual([
      "1 p day0 5",
      "1 p day1 9",
      "1 p day2 1",
      "1 s day1 2",
      "2 r day0 8",
      "2 r day1 0",
    ]);
    expect(await months()).toEqual(["25 6"]);
    expect(await restated()).toEqual(["- 1", "- 2", "6 9", "7 -"]);
    expect(await covered()).toEqual(["1 day0 3 true", "2 day0 3 true"]);
  });

  test("and has not changed counts as unchanged, and says that it was read again", async () => {
    await load(FIRST);
    const stamp = await drawStamp(bundle.store.db);
    expect(await load(FIRST, { stamp })).toEqual({
      outcome: "loaded",
      ...NOTHING,
      unchanged: 4,
      unverified: [],
    });
    expect(await covered(", v.fetch_number")).toEqual([
      `1 day0 3 true ${stamp.fetchNumber}`,
      `2 day0 3 true ${stamp.fetchNumber}`,
    ]);
    expect(await lines("SELECT * FROM usage.late_change")).toEqual([]);
    expect(await restated()).toEqual([]);
  });

  test.each([
    ["older than what is loaded", -1],
    ["as new as what is loaded", 0],
  ])("stays as it is if the answer is %s", async (_, step) => {
    const early = await drawStamp(bundle.store.db);
    const stamp = await drawStamp(bundle.store.db);
    // One of two workspaces, and one of three days: the answer is discarded whole.
    await load([[1, A, "p", 6]], { stamp, window: windowOf(1, 2), workspaces: [A] });
    const [before, had] = [await stored(), await covered()];
    const answer = { stamp: step === 0 ? stamp : early };
    expect(await load(FIRST, answer)).toEqual({ outcome: "discarded", ...NOTHING, unverified: [] });
    expect([await stored(), await covered()]).toEqual([before, had]);
    expect((await load(FIRST)).outcome).toBe("loaded");
  });

  test("keeps its final days final, each workspace its own, and lets the new ones be provisional", async () => {
    await load([[0, A, "p", 5]], { window: windowOf(0, 2), workspaces: [A] });
    await load([[0, B, "r", 8]], { window: windowOf(0, 1), workspaces: [B] });
    await load(FIRST, { settleAfterMs: 30 * DAY_MS });
    expect(await covered()).toEqual(["1 day0 2 true", "1 day2 1 false", "2 day0 1 true", "2 day1 2 false"]);
    // A's second day was empty and final; B's was not loaded.
    expect(await restated()).toEqual(["- 6"]);
  });

  test("ends its failures, but for newer ones and those of other time", async () => {
    const { store, sourceId } = bundle;
    const scopes = { sourceId, groupBy: "project" as const, stride: "day" as const };
    const scopeIds = await scopesOf(store.db, { ...scopes, workspaceIds: [A] });
    const fail = async (period: { start: number; end: number }) =>
      failScopes(store, {
        scopeIds,
        period,
        state: "failed",
        code: "x",
        message: "x",
        stamp: await drawStamp(store.db),
      });
    const left = () => lines("SELECT (period_start AT TIME ZONE 'UTC')::date FROM usage.failure ORDER BY 1");
    await fail(windowOf(0, 1));
    await fail(windowOf(3, 4));
    const stamp = await drawStamp(store.db);
    await fail(windowOf(1, 2));
    await load(FIRST, { stamp });
    expect(await left()).toEqual([DAYS[1], DAYS[3]]);
    await load(FIRST);
    expect(await left()).toEqual([DAYS[3]]);
  });

  test("waits longer after each failure, for each workspace as often as its own time failed", async () => {
    const { store, sourceId } = bundle;
    const scopes = { sourceId, groupBy: "project" as const, stride: "day" as const };
    const fail = async (workspaceIds: readonly string[], from: number, to: number) =>
      failScopes(store, {
        period: windowOf(from, to),
        state: "failed",
        code: "x",
        message: "x",
        scopeIds: await scopesOf(store.db, { ...scopes, workspaceIds }),
        stamp: await drawStamp(store.db),
      });
    for (const _ of [1, 2]) await fail([A], 0, 1);
    await fail([A], 1, 2);
    await fail([A, B], 0, 3);
    expect(
      await lines(
        `SELECT left(w.external_id, 1), f.attempts, extract(epoch FROM f.retry_at - f.failed_at)::integer / 3600
         FROM usage.failure f JOIN usage.trace_scope USING (scope_id) JOIN usage.entity w ON w.entity_id = workspace_id
         ORDER BY 1`,
      ),
    ).toEqual(["1 3 4", "2 1 1"]);
  });
});

describe("an answer that would delete all of a workspace's window", () => {
  const BOTH: Row[] = [
    [0, A, "p", 5],
    [1, B, "r", 8],
  ];

  test("changes nothing until a second answer says the same of the same workspace", async () => {
    const { store, sourceId } = bundle;
    await load(BOTH);
    const [before, had] = [await stored(), await covered(", v.fetch_number")];
    const scopes = { sourceId, groupBy: "project" as const, stride: "day" as const, workspaceIds: [A, B] };
    const [scopeOfA, scopeOfB] = await scopesOf(store.db, scopes);
    const since = (await drawStamp(store.db)).fetchedAt;
    await proveAccess(store, { sourceId, workspaceIds: [A, B] });
    const unconfirmed = { outcome: "unconfirmed", ...NOTHING, unverified: [], fullyDeleted: [scopeOfA] };
    expect(await load([[1, B, "r", 9]])).toEqual(unconfirmed);
    expect(await load([[1, B, "r", 9]], { confirms: { fullyDeleted: [scopeOfB as number], since } })).toEqual(
      unconfirmed,
    );
    expect([await stored(), await covered(", v.fetch_number")]).toEqual([before, had]);

    const confirms = { fullyDeleted: [scopeOfA as number], since };
    expect(await load([[1, B, "r", 9]], { confirms })).toMatchObject({
      outcome: "loaded",
      retired: 1,
      updated: 1,
      restated: 2,
      fullyDeleted: [],
    });
    expect(await stored()).toEqual(["2 r day1 9"]);
    // And not of another one: B goes as well now.
    expect(await load([], { confirms })).toMatchObject({ outcome: "unconfirmed", fullyDeleted: [scopeOfB] });
  });

  test("changes only the workspaces whose access is proven", async () => {
    const { store, sourceId } = bundle;
    await load(BOTH);
    await applyListing(store, {
      sourceId,
      workspaces: [{ workspaceId: B, name: null, isDeleted: false }],
      stamp: await drawStamp(store.db),
    });
    const [scopeOfA] = await scopesOf(store.db, {
      sourceId,
      groupBy: "project",
      stride: "day",
      workspaceIds: [A],
    });
    const [, hadB] = await covered();
    expect(await load([[1, B, "r", 9]])).toEqual({
      outcome: "loaded",
      ...NOTHING,
      updated: 1,
      restated: 1,
      unverified: [scopeOfA],
    });
    expect(await stored()).toEqual(["1 p day0 5", "2 r day1 9"]);
    // Its records stay, its zeros do not.
    expect(await covered()).toEqual(["1 day0 1 true", hadB]);
    expect(await lines("SELECT scope_id, state, code, message FROM usage.failure")).toEqual([
      expect.stringMatching(`^${scopeOfA} unverified workspace_unverified .*the key may have no access`),
    ]);
    expect(await load([], { workspaces: [A] })).toEqual({
      outcome: "unverified",
      ...NOTHING,
      unverified: [scopeOfA],
    });
  });
});

test("zeros alone delete other usage than traces, so they need a second answer; of traces they are counts", async () => {
  const { store, sourceId } = bundle;
  const withA = (p: number, q: number): Row[] => [
    [0, A, "p", p],
    [0, A, "q", q],
    [1, B, "r", 8],
  ];
  const [before, zeros] = [withA(5, 2), withA(0, 0)];
  await load(before);
  expect(await load(zeros)).toMatchObject({ outcome: "loaded", updated: 2, unchanged: 1 });
  for (const meter of ["longlived", "deployments"] as const) {
    await load(before, { meter });
    const scopes = { sourceId, meter, groupBy: "project", stride: "day", workspaceIds: [A] } as const;
    const fullyDeleted = await scopesOf(store.db, scopes);
    expect(await load(zeros, { meter })).toMatchObject({ outcome: "unconfirmed", fullyDeleted });
    // One count that stays is enough.
    expect(await load(withA(1, 0), { meter })).toMatchObject({ outcome: "loaded", updated: 2 });
    const since = (await drawStamp(store.db)).fetchedAt;
    await proveAccess(store, { sourceId, workspaceIds: [A, B] });
    expect(await load(zeros, { meter })).toMatchObject({ outcome: "unconfirmed", fullyDeleted });
    expect(await load(zeros, { meter, confirms: { fullyDeleted, since } })).toMatchObject({
      outcome: "loaded",
      updated: 1,
      unchanged: 2,
    });
  }
});

test("an answer from before the data start moved is discarded", async () => {
  await bundle.reader.query("UPDATE usage.source SET data_start = $1", [DAYS[1]]);
  expect(await load([[0, A, "p", 5]])).toEqual({ outcome: "discarded", ...NOTHING, unverified: [] });
  expect([await stored(), await covered()]).toEqual([[], []]);
  expect((await load([[1, A, "p", 5]], { window: windowOf(1, 3) })).outcome).toBe("loaded");
});

test("an answer that names a workspace proves access to it, even if it is then discarded", async () => {
  await bundle.reader.query("UPDATE usage.workspace SET readable_at = NULL, readable_since = NULL");
  await bundle.reader.query("UPDATE usage.source SET data_start = $1", [DAYS[1]]);
  expect((await load([[0, A, "p", 5]])).outcome).toBe("discarded");
  expect(
    await lines(
      `SELECT left(e.external_id, 1), w.readable_at IS NOT NULL FROM usage.workspace w JOIN usage.entity e USING (entity_id) ORDER BY 1`,
    ),
  ).toEqual(["1 true", "2 false"]);
});

test("a zero that was withdrawn is a restatement once its time has a count", async () => {
  const { store, sourceId } = bundle;
  await load([], { workspaces: [A] });
  const list = async (ids: readonly string[]) =>
    applyListing(store, {
      sourceId,
      workspaces: ids.map((workspaceId) => ({ workspaceId, name: null, isDeleted: false })),
      stamp: await drawStamp(store.db),
    });
  await list([B]);
  await list([A, B]);
  expect(await covered()).toEqual([]);
  expect(await load([[1, A, "p", 4]], { workspaces: [A] })).toEqual({
    outcome: "loaded",
    ...NOTHING,
    inserted: 1,
    restated: 1,
    unverified: [],
  });
  expect(await restated()).toEqual(["- 4"]);
});

test("hours are stored apart: they are in no month's total, and no day is noted as final", async () => {
  const hours = { stride: "hour" as const, start: FIRST_DAY, end: FIRST_DAY + 3 * HOUR_MS };
  expect(await load([[0, A, "p", 5]], { window: hours, workspaces: [A] })).toMatchObject({ inserted: 1 });
  expect(await lines("SELECT traces FROM usage.hourly_record")).toEqual(["5"]);
  expect(await lines("SELECT * FROM usage.became_final")).toEqual([]);
  expect(await lines("SELECT * FROM usage.monthly_total")).toEqual([]);
  expect(await load([[0, A, "p", 6]], { window: hours, workspaces: [A] })).toMatchObject({ restated: 1 });
  expect(await lines("SELECT traces FROM usage.hourly_record")).toEqual(["6"]);
});

test("a day is noted as final by the first load in which it is", async () => {
  const FINAL = "SELECT (period_start AT TIME ZONE 'UTC')::date FROM usage.became_final";
  const finalAt = () => lines("SELECT final_at::text FROM usage.became_final ORDER BY period_start");
  await load([[0, A, "p", 5]], { workspaces: [A], settleAfterMs: 30 * DAY_MS });
  expect(await lines(FINAL)).toEqual([]);
  // Fetched as the seventh day begins, so the first day ended five days before.
  const stamp = { ...(await drawStamp(bundle.store.db)), fetchedAt: at(6) };
  await load([[0, A, "p", 5]], { workspaces: [A], stamp, settleAfterMs: 5 * DAY_MS });
  expect(await lines(FINAL)).toEqual([DAYS[0]]);
  expect(await covered()).toEqual(["1 day0 1 true", "1 day1 2 false"]);
  const [first] = await finalAt();
  await load([[0, A, "p", 5]], { workspaces: [A] });
  const noted = await finalAt();
  expect(noted).toEqual([first, expect.any(String)]);
});

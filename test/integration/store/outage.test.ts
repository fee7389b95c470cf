import { beforeEach, describe, expect, test } from "vitest";
import { retryAfterOutage } from "../../../src/core/store/catalog/failures.ts";
import { createSource, FIRST_DAY, setupStore } from "./setup.ts";

const WORKSPACES = ["w1", "w2", "w3"];

let bundle: Awaited<ReturnType<typeof setupStore>>;
let sourceId: number;

beforeEach(async () => {
  bundle = await setupStore();
  sourceId = await createSource(bundle, { workspaceIds: WORKSPACES, dataStart: FIRST_DAY });
});

async function fetched(minutesAgo: number, outcome: string, code?: string, day = 0): Promise<void> {
  await bundle.reader.query(
    `INSERT INTO usage.fetch (source_id, purpose, group_by, stride, period_start, period_end, workspaces, fetched_at,
       finished_at, outcome, code)
     SELECT $1, 'load', 'project', 'day', d, d + interval '1 day', 1, at,
            CASE WHEN $3 <> 'running' THEN at + interval '1 minute' END, $3, $4
     FROM (SELECT now() - make_interval(mins => $2) AS at, to_timestamp($5) + make_interval(days => $6) AS d) x`,
    [sourceId, minutesAgo, outcome, code ?? null, FIRST_DAY / 1000, day],
  );
}

/** A task of that day that gave up: attempts, a minute apart, the last of them so many minutes ago. */
async function gaveUp(
  minutesAgo: number,
  { code = "server_error", attempts = 3, workspace = "w1", day = 0, outcome = "failed", times = 1 } = {},
): Promise<void> {
  for (let back = attempts - 1; back >= 0; back--) await fetched(minutesAgo + back, outcome, code, day);
  await bundle.reader.query(
    `INSERT INTO usage.failure (scope_id, period_start, period_end, state, code, message, attempts, fetch_number,
       failed_at, retry_at)
     SELECT c.scope_id, d, d + interval '1 day', 'failed', $2, 'no response', $7,
            (SELECT max(fetch_number) FROM usage.fetch), now() - make_interval(mins => $3), now() + interval '1 hour'
     FROM usage.trace_scope c JOIN usage.entity e ON e.entity_id = c.workspace_id,
          (SELECT to_timestamp($5) + make_interval(days => $6) AS d) x
     WHERE c.source_id = $1 AND c.group_by = 'project' AND c.stride = 'day' AND e.external_id = $4`,
    [sourceId, code, minutesAgo, workspace, FIRST_DAY / 1000, day, times],
  );
}

async function due(): Promise<string[]> {
  const { rows } = await bundle.reader.query<{ part: string }>(
    `SELECT e.external_id || ' ' || (f.period_start AT TIME ZONE 'UTC')::date - to_timestamp($1)::date AS part
     FROM usage.failure f JOIN usage.trace_scope USING (scope_id) JOIN usage.entity e ON e.entity_id = workspace_id
     WHERE f.retry_at <= now() ORDER BY 1`,
    [FIRST_DAY / 1000],
  );
  return rows.map((row) => row.part);
}

describe("after an outage", () => {
  test.each([
    "server_error",
    "network",
    "timeout",
    "response_cut",
    "response_too_large",
    "response_invalid",
    "redirect_refused",
  ])("failures with %s are due at once", async (code) => {
    await fetched(60, "loaded");
    for (const workspace of WORKSPACES) await gaveUp(30, { code, workspace });
    await fetched(5, "loaded");
    expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(3);
    expect(await due()).toHaveLength(3);
    expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(0);
  });

  test.each(["loaded", "discarded", "unconfirmed", "unverified", "refused", "compared"])(
    "a response with outcome %s ends it",
    async (outcome) => {
      for (const workspace of WORKSPACES) await gaveUp(30, { workspace });
      await fetched(5, outcome);
      expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(3);
    },
  );
});

test.each(["response_invalid", "redirect_refused"])(
  "the first three times %s are due once another request was answered, even one before it",
  async (code) => {
    await gaveUp(30, { code, attempts: 1, times: 3 });
    await fetched(35, "loaded", undefined, 3);
    await fetched(5, "loaded", undefined, 3);
    expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(1);
  },
);

test("as long as nothing is answered, only the newest failure is retried", async () => {
  for (const day of [0, 2, 1]) await gaveUp(30, { day });
  await fetched(5, "failed", "server_error");
  await fetched(4, "failed", "response_invalid");
  await fetched(4, "running");
  expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(1);
  const { rows } = await bundle.reader.query(
    "SELECT period_start = (SELECT max(period_start) FROM usage.failure) AS newest FROM usage.failure WHERE retry_at <= now()",
  );
  expect(rows).toEqual([{ newest: true }]);
});

describe("a failure keeps its retry time", () => {
  test.each([
    ["request_refused", "failed"],
    ["response_invalid", "refused"],
    ["rate_limited", "failed"],
    ["task_poisoned", "failed"],
  ])("if its code is %s and the request was %s", async (code, outcome) => {
    await gaveUp(30, { code, outcome });
    await fetched(5, "loaded");
    expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(0);
  });

  test.each([
    { responded: "before the first attempt", minutesAgo: 34, released: 1 },
    { responded: "after the first attempt, though sent before", minutesAgo: 33, released: 0 },
    { responded: "between them", minutesAgo: 31, released: 0 },
    { responded: "after the last one", minutesAgo: 29, released: 1 },
  ])("if another request was answered $answered: $released released", async ({ minutesAgo, released }) => {
    await gaveUp(30);
    await fetched(minutesAgo, "loaded", undefined, 3);
    await fetched(5, "loaded", undefined, 3);
    expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(released);
  });

  test.each(["response_invalid", "redirect_refused"])(
    "if it had %s four times, and another request was answered shortly before",
    async (code) => {
      await gaveUp(30, { code, times: 4, attempts: 1 });
      await fetched(35, "loaded", undefined, 3);
      await fetched(5, "loaded", undefined, 3);
      expect(await retryAfterOutage(bundle.store.db, sourceId)).toBe(0);
    },
  );

  test("if it belongs to another source", async () => {
    await gaveUp(30);
    await fetched(5, "loaded");
    expect(await retryAfterOutage(bundle.store.db, sourceId + 1)).toBe(0);
  });
});

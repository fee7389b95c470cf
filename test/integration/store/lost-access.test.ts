import { beforeEach, expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import {
  lostWorkspaces,
  neverRead,
  provedByStatistics,
} from "../../../src/core/store/access/withdrawn-zeros.ts";
import { noteAccess } from "../../../src/core/store/access/workspace-access.ts";
import { applyListing } from "../../../src/core/store/access/workspaces.ts";
import { beginFetch, drawFetchToken, finishFetch } from "../../../src/core/store/work/fetch-ledger.ts";
import { KEEP_PROOF } from "../../support/by-hand.ts";
import { poll } from "../../support/poll.ts";
import { loadDeploymentRows, loadRows, type ResponseRow } from "../../support/store.ts";
import { intercepted } from "./model/statements.ts";
import { FIRST_DAY, type StoreBundle, setupSource } from "./setup.ts";

const [WORKSPACE, OTHER] = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
const DAY = new Date(FIRST_DAY).toISOString().slice(0, 10);
const MONTH = `${DAY.slice(0, 7)}-01`;

let bundle: StoreBundle & { sourceId: number };

beforeEach(async () => {
  bundle = await setupSource({ workspaceIds: [WORKSPACE, OTHER], dataStart: FIRST_DAY });
});

const load = (rows: readonly ResponseRow[], groupBy: "workspace" | "project" = "workspace") =>
  loadRows(bundle.store, {
    sourceId: bundle.sourceId,
    groupBy,
    workspaceId: WORKSPACE,
    rows,
    window: { stride: "day", start: FIRST_DAY, end: FIRST_DAY + DAY_MS },
  });
const list = async (ids: readonly string[]) =>
  applyListing(bundle.store, {
    sourceId: bundle.sourceId,
    workspaces: ids.map((workspaceId) => ({ workspaceId, name: null, isDeleted: false })),
    fetchToken: await drawFetchToken(bundle.store.db),
  });
const name = async (named: readonly string[], isStatistics = false) =>
  noteAccess(bundle.store, {
    sourceId: bundle.sourceId,
    requested: [WORKSPACE, OTHER],
    named,
    isStatistics,
    at: (await drawFetchToken(bundle.store.db)).fetchedAt,
  });
/** As if no response had ever named or listed any workspace. */
const forget = () =>
  rowsOf("UPDATE usage.workspace SET used_before = NULL, readable_at = NULL, readable_since = NULL");
const rowsOf = async (text: string, values: unknown[] = []) => (await bundle.reader.query(text, values)).rows;
const shown = async () =>
  (
    await rowsOf(
      `SELECT traces, coverage_status, is_final FROM reporting.fct_usage_workspace_daily
       WHERE workspace_id = $1 AND usage_date = $2`,
      [WORKSPACE, DAY],
    )
  )[0];
const UNVERIFIED = { traces: null, coverage_status: "unverified", is_final: false };
const EMPTY = { traces: "0", coverage_status: "empty", is_final: true };

test("usage that is no trace proves access, but no response about traces must name its workspace for ever", async () => {
  await forget();
  await loadDeploymentRows(bundle.store, {
    sourceId: bundle.sourceId,
    groupBy: "workspace",
    workspaceId: WORKSPACE,
    rows: [[`${DAY}T00:00:00Z`, WORKSPACE, [1, 1, 1]]],
    window: { stride: "day", start: FIRST_DAY, end: FIRST_DAY + DAY_MS },
  });
  await load([]);
  expect(await shown()).toEqual(EMPTY);
  await rowsOf("UPDATE usage.workspace SET readable_at = readable_at - interval '3 h'");
  expect(await name([])).toEqual([]);
  expect(await lostWorkspaces(bundle.store.db)).toEqual([]);
  expect(await shown()).toEqual(EMPTY);
});

test("a listing withdraws the zero of a load that has read the proof and is not committed", async () => {
  const [gate, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const loading = intercepted(
    {
      before: async ({ text }) => {
        if (!text.includes("insert into usage.coverage")) return;
        reached.resolve();
        await gate.promise;
      },
    },
    () => load([]),
  );
  await reached.promise;
  let isOver = false;
  const listing = list([OTHER]).finally(() => {
    isOver = true;
  });
  await poll(async () => isOver || (await rowsOf("SELECT FROM pg_locks WHERE NOT granted")).length > 0);
  gate.resolve();
  expect((await loading).outcome).toBe("loaded");
  expect(await listing).toEqual([{ workspaceId: WORKSPACE, isNewlyUnlisted: true, zeros: 1 }]);
  expect(await shown()).toEqual(UNVERIFIED);
});

test("a proof that was asked for before a response had come does not confirm its zeros", async () => {
  const { sourceId, store } = bundle;
  const window = { stride: "day" as const, start: FIRST_DAY, end: FIRST_DAY + 2 * DAY_MS };
  const requested = { sourceId, purpose: "load" as const, window, workspaces: 1 };
  const empty = await beginFetch(store.db, { meter: "traces", ...requested, groupBy: "workspace" });
  const named = await beginFetch(store.db, { meter: "traces", ...requested, groupBy: "project" });
  await name([WORKSPACE, OTHER]);
  const given = { sourceId, workspaceId: WORKSPACE, window };
  await loadRows(store, { ...given, groupBy: "workspace", rows: [], fetchToken: empty });
  // It names the workspace, so its empty day is a zero.
  const rows: ResponseRow[] = [[new Date(FIRST_DAY + DAY_MS).toISOString(), "p", 5]];
  await loadRows(store, { ...given, groupBy: "project", rows, fetchToken: named });
  for (const fetchToken of [empty, named]) await finishFetch(store.db, fetchToken, { outcome: "loaded" });
  expect(await list([OTHER])).toEqual([{ workspaceId: WORKSPACE, isNewlyUnlisted: true, zeros: 2 }]);
  expect(await shown()).toEqual(UNVERIFIED);
  const left = await rowsOf(
    "SELECT group_by FROM reporting_detail.usage_coverage_daily WHERE stride = 'day' AND workspace_id = $1 AND status IN ('ok', 'empty') ORDER BY 1",
    [WORKSPACE],
  );
  expect(left).toEqual([{ group_by: "project" }, { group_by: "project" }]);
});

test("a comparison with an export of that time is withdrawn with the zeros", async () => {
  await load([]);
  await load([[new Date(FIRST_DAY).toISOString(), "p", 5]], "project");
  await rowsOf(
    `INSERT INTO usage.reconciled SELECT scope_id, period_start, period_end, fetch_number, now() FROM usage.coverage; ${KEEP_PROOF}`,
  );
  await list([OTHER]);
  expect(await rowsOf("SELECT FROM usage.reconciled")).toEqual([]);
});

test("a zero withdrawn from a closed month is named, and becomes an adjustment", async () => {
  await load([]);
  await load([], "project");
  await rowsOf(
    "INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements) VALUES ($1, $2::date, $2::date + interval '1 month', 0, 0)",
    [bundle.sourceId, MONTH],
  );
  await list([OTHER]);
  expect(await lostWorkspaces(bundle.store.db)).toEqual([
    {
      source: "default",
      workspaceId: WORKSPACE,
      isUnread: true,
      isUnlisted: true,
      zeros: 2,
      firstDay: DAY,
      lastDay: DAY,
      closedMonths: [DAY.slice(0, 7)],
    },
  ]);
  expect(await rowsOf("SELECT FROM reporting_detail.fct_close")).toEqual([]);

  await list([WORKSPACE, OTHER]);
  expect((await load([[`${DAY}T00:00:00Z`, WORKSPACE, 180]])).restated).toBe(1);
  expect((await load([[`${DAY}T00:00:00Z`, "p", 180]], "project")).restated).toBe(1);
  expect(await lostWorkspaces(bundle.store.db)).toEqual([]);
  expect(
    await rowsOf("SELECT closed_traces, adjustment_traces, current_traces FROM reporting_detail.fct_close"),
  ).toEqual(Array(2).fill({ closed_traces: "0", adjustment_traces: "180", current_traces: "180" }));
});

test("zeros of a workspace that no usage ever named rest on its statistics", async () => {
  const { store, sourceId } = bundle;
  await forget();
  await name([WORKSPACE, OTHER], true);
  await load([]);
  expect(await provedByStatistics(store.db, sourceId)).toMatchObject([{ workspaceId: WORKSPACE, zeros: 1 }]);
  await load([[`${DAY}T00:00:00Z`, WORKSPACE, 0]]);
  expect(await provedByStatistics(store.db, sourceId)).toEqual([]);
  expect(await name([OTHER], true)).toEqual([]);
});

test("configured workspaces that nothing ever proved readable are named as never read", async () => {
  const { store } = bundle;
  expect(await neverRead(store.db)).toEqual([]);
  await forget();
  await list([WORKSPACE, OTHER]);
  expect(await neverRead(store.db)).toMatchObject([{ workspaceId: WORKSPACE }, { workspaceId: OTHER }]);
  await name([OTHER], true);
  await rowsOf("UPDATE usage.source SET workspace_ids = $1", [[OTHER]]);
  expect(await neverRead(store.db)).toEqual([]);
});

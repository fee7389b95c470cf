import { expect } from "vitest";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { FaultStep } from "../../../src/features/standin/engine/faults.ts";
import { now } from "../../support/clock.ts";
import { setReadable } from "../../support/source.ts";
import { differences, inLedger, inStore } from "../../support/tables.ts";
import {
  type Closed,
  checkClosed,
  checkFinalFigures,
  checkLoad,
  checkReconciled,
  checkStatus,
  DIMENSIONS,
  figures,
} from "./checks.ts";
import { command, note, WORKSPACES, type World } from "./world.ts";

type Step = (world: World) => Promise<void> | void;

async function sync(world: World): Promise<void> {
  const ended = await command(world, "sync", "--inline");
  const to = dayOf(world.bench.today + DAY_MS);
  const from = await dataStart(world);
  const kept = Number.parseInt(world.env.USAGE_HOURLY_FOR?.slice(1) ?? "0", 10) * DAY_MS;
  const hoursFrom = dayOf(now() - kept);
  await checkLoad(world, ended, { from, to, stride: "day", dimensions: DIMENSIONS, hoursFrom });
}

async function dataStart({ bench }: World): Promise<string> {
  const [source] = await bench.sql<{ day: string }>("SELECT data_start::text AS day FROM usage.source");
  return source?.day ?? dayOf(bench.dataStart);
}

async function backfill(world: World): Promise<void> {
  const { dice } = world;
  const { from, to } = await someDays(world, 20);
  const stride = dice.next() < 0.7 ? "day" : "hour";
  const dimension = dice.next() < 0.5 ? undefined : dice.pick(DIMENSIONS);
  const dimensions = dimension === undefined ? DIMENSIONS : [dimension];
  const by = dimension === undefined ? [] : ["--group-by", dimension];
  const range = ["--from", from, "--to", to, "--stride", stride, ...by];
  const reprocess = dice.next() < 0.5 ? "missing" : "all";
  const ended = await command(world, "backfill", "--inline", ...range, "--reprocess", reprocess);
  await checkLoad(world, ended, { from, to, stride, dimensions });
}

async function someDays(world: World, most: number): Promise<{ from: string; to: string }> {
  const { dice, bench } = world;
  const start = Date.parse(await dataStart(world));
  const days = (bench.today - start) / DAY_MS;
  const length = 1 + dice.below(most);
  const first = start + dice.below(Math.max(1, days + 2 - length)) * DAY_MS;
  return { from: dayOf(first), to: dayOf(Math.min(first + length * DAY_MS, bench.today + DAY_MS)) };
}

const FAULTS: readonly FaultStep["fault"][] = [
  { kind: "status", status: 404 },
  { kind: "status", status: 400 },
  { kind: "status", status: 500, retry_after: 0 },
  { kind: "status", status: 403, content_type: "text/html", body: "<html></html>" },
  { kind: "cut", framing: "length", at: "half" },
  { kind: "reset" },
  { kind: "stride" },
];

function fault({ bench, dice, ...world }: World): void {
  const one = dice.pick(FAULTS);
  const match = { path: "granular-usage", query: { group_by: dice.pick(DIMENSIONS) } };
  const times = 1 + dice.below(4);
  bench.standin.faults.script({ fault: one, times, match });
  note({ ...world, bench, dice }, `fault ${JSON.stringify(one)} x${times} on ${match.query.group_by}`);
}

function restate(world: World): void {
  const { bench, dice, restated } = world;
  const { ledger, organisation } = bench.standin;
  const streams = organisation.streams.filter(({ project }) =>
    bench.workspaceIds.includes(project.workspace.id),
  );
  const { project, user, key } = dice.pick(streams);
  const at = bench.dataStart + dice.below((bench.today - bench.dataStart) / DAY_MS) * DAY_MS + 5 * 3_600_000;
  const { before, after } = ledger.change({ project, user, key, at }, dice.below(2) === 0 ? 7 : -3);
  restated.add(`${project.workspace.id} ${dayOf(at)}`);
  note(world, `restate ${project.workspace.id} ${dayOf(at)}: ${before} -> ${after}`);
}

function lose(world: World): void {
  const workspace = world.dice.below(WORKSPACES);
  setReadable(world.bench.standin, workspace, false);
  note(world, `workspace ${workspace} lost`);
}

function loseLater(world: World): void {
  world.loseLater = { after: 1 + world.dice.below(12), workspace: world.dice.below(WORKSPACES) };
  note(world, `workspace ${world.loseLater.workspace} will be lost after ${world.loseLater.after} requests`);
}

function restoreAll(world: World): void {
  for (let i = 0; i < WORKSPACES; i++) setReadable(world.bench.standin, i, true);
  note(world, "access restored");
}

async function reconcile(world: World, ...more: string[]): Promise<void> {
  const { from, to } = await someDays(world, 62);
  await checkReconciled(world, await command(world, "reconcile", "--from", from, "--to", to, ...more), {
    from,
    to,
  });
}

async function close(world: World): Promise<void> {
  const ended = await command(world, "close", world.month, "--without-costs");
  await checkClosed(world, ended);
  const [{ state, digest = null } = { state: "" }] = (ended.said ?? []) as Closed[];
  if (state !== "open" || digest === null || world.dice.next() < 0.7) return;
  await checkClosed(world, await command(world, "close", world.month, "--without-costs", "--accept", digest));
}

async function status(world: World): Promise<void> {
  await checkStatus(world, await command(world, "status"));
}

async function coverage(world: World): Promise<void> {
  const ended = await command(world, "coverage", "--fail-on-gaps");
  const [gaps] = await world.bench.sql<{ days: number }>(
    `SELECT count(*)::integer AS days FROM reporting_detail.usage_coverage_daily
     WHERE usage_date < (now() AT TIME ZONE 'UTC')::date AND status IN ('failed', 'missing', 'unverified')`,
  );
  const [all] = await world.bench.sql<{ days: number }>(
    "SELECT count(*)::integer AS days FROM reporting_detail.usage_coverage_daily",
  );
  if (all?.days !== 0) expect([gaps?.days, ended.code]).toEqual([gaps?.days, gaps?.days === 0 ? 0 : 4]);
}

async function prune(world: World): Promise<void> {
  const before = await figures(world);
  await command(world, "prune");
  expect([world.story.slice(-8), await figures(world)]).toEqual([world.story.slice(-8), before]);
}

async function totals(world: World): Promise<void> {
  const ended = await command(world, "totals", "--reach", "all");
  const [left] = await world.bench.sql<{ differences: number }>(
    "SELECT count(*)::integer AS differences FROM usage.difference WHERE compared_with <> 'export' AND state = 'platform_disagrees'",
  );
  if (ended.code === 0)
    expect([world.story.slice(-8), left?.differences]).toEqual([world.story.slice(-8), 0]);
}

async function passTime(world: World): Promise<void> {
  await world.bench.passTime();
  note(world, "time passes");
}

function moveSettings(world: World): void {
  const { dice, env, bench } = world;
  env.USAGE_WORKSPACE_IDS = bench.workspaceIds.slice(0, dice.pick([2, WORKSPACES, WORKSPACES])).join();
  env.USAGE_DATA_START = dayOf(bench.dataStart + dice.pick([0, 0, 4]) * DAY_MS);
  env.USAGE_SETTLE_AFTER = dice.pick(["P3D", "P3D", "P5D", "P1D"]);
  env.USAGE_HOURLY_FOR = dice.pick(["P2D", "P1D", "P4D"]);
  note(
    world,
    `settings ${env.USAGE_SETTLE_AFTER} ${env.USAGE_HOURLY_FOR} ${env.USAGE_DATA_START} ${env.USAGE_WORKSPACE_IDS}`,
  );
}

const STEPS: readonly (readonly [weight: number, step: Step])[] = [
  [6, sync],
  [6, backfill],
  [5, fault],
  [3, restate],
  [2, lose],
  [2, loseLater],
  [4, restoreAll],
  [3, (world) => reconcile(world)],
  [3, (world) => reconcile(world, "--repair")],
  [1, totals],
  [2, close],
  [2, status],
  [1, coverage],
  [1, prune],
  [2, passTime],
  [1, moveSettings],
];

/** One step by the campaign's dice. Whatever it did, no final figure may be wrong afterwards. */
export async function takeStep(world: World): Promise<void> {
  let left = world.dice.next() * STEPS.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, step] of STEPS) {
    left -= weight;
    if (left >= 0) continue;
    await step(world);
    break;
  }
  await checkFinalFigures(world);
}

/** Without faults, with all access: the next commands load, repair and prove everything, and say so. */
export async function heal(world: World): Promise<void> {
  const { bench, env } = world;
  bench.standin.faults.clear();
  world.loseLater = undefined;
  restoreAll(world);
  await passTime(world);
  Object.assign(env, {
    USAGE_SETTLE_AFTER: "P3D",
    USAGE_HOURLY_FOR: "P2D",
    USAGE_WORKSPACE_IDS: bench.workspaceIds.join(),
    USAGE_DATA_START: dayOf(bench.dataStart),
  });
  await sync(world);
  const [from, to] = [dayOf(bench.dataStart), dayOf(bench.today + DAY_MS)];
  for (const stride of ["day", "hour"]) {
    await command(world, "reconcile", "--from", from, "--to", to, "--stride", stride, "--repair");
  }
  const synced = await command(world, "sync", "--inline");
  const proved = await command(world, "reconcile", "--from", from, "--to", to);
  const shown = await command(world, "status");
  const failures = await bench.sql(
    `SELECT c.group_by, c.stride, f.period_start, f.period_end, f.state, f.code, f.message, f.attempts, f.retry_at, c.workspace_id
     FROM usage.failure f JOIN usage.trace_scope c USING (scope_id)`,
  );
  expect([world.story, failures, synced.code, proved.code, shown.code]).toEqual([world.story, [], 0, 0, 0]);
  const range = { start: bench.dataStart, end: bench.today + DAY_MS };
  const { workspaceIds } = bench;
  const truth = inLedger(bench.standin, { stride: "day", range, workspaceIds });
  expect([world.story, differences(await inStore(bench, ["day"]), truth)]).toEqual([world.story, []]);
}

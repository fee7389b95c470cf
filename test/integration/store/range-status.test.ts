import fc from "fast-check";
import { expect, test } from "vitest";
import type { LoadStatus } from "../../../src/core/domain/coverage/range-status.ts";
import { DAY_MS, HOUR_MS, STRIDES, type Stride } from "../../../src/core/domain/time/stride.ts";
import { ensureScopes, scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { rangeStatus } from "../../../src/core/store/coverage/range-status.ts";
import { seed } from "../../support/drawn.ts";
import { createSource, type StoreBundle, setupStore } from "./setup.ts";

const SEED = seed(20_260_105);
const DATA_START = Date.UTC(2026, 0, 5);
const DAYS = 8;
const DAYS_OF_MONTH = 30;

type State = "none" | "provisional" | "final";
/** What is known of each hour, day and week of a cell, and which of them failed since. */
interface Known {
  readonly hours?: readonly State[];
  readonly days?: readonly State[];
  readonly failedHours?: readonly boolean[];
  readonly failedDays?: readonly boolean[];
}

const state = fc.constantFrom<State>("none", "provisional", "final", "final");
const rare = (length: number, max: number) =>
  fc.array(
    fc.integer({ min: 0, max }).map((thrown) => thrown === 0),
    { minLength: length, maxLength: length },
  );
const knownTime: fc.Arbitrary<Required<Known>> = fc.record({
  hours: fc
    .array(fc.tuple(state, fc.integer({ min: 1, max: 60 })), { minLength: 30, maxLength: 30 })
    .map((runs) => runs.flatMap(([one, length]) => Array<State>(length).fill(one)).slice(0, DAYS * 24)),
  days: fc.array(state, { minLength: DAYS, maxLength: DAYS }),
  failedHours: rare(DAYS * 24, 20),
  failedDays: rare(DAYS, 6),
});

const at = (n: number, unit: number) => new Date(DATA_START + n * unit);

async function setupCells(cells: readonly Known[]) {
  const bundle = await setupStore();
  const workspaceIds = cells.map((_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`);
  const sourceId = await createSource(bundle, { workspaceIds, dataStart: DATA_START });
  await ensureScopes(bundle.store.db, { sourceId, groupings: ["user"], strides: STRIDES });
  const scopes = async (stride: Stride) =>
    scopesOf(bundle.store.db, { sourceId, groupBy: "user", stride, workspaceIds });
  const [hours, days] = [await scopes("hour"), await scopes("day")];
  for (const [n, known] of cells.entries()) {
    await create(bundle, hours[n] as number, known.hours ?? [], known.failedHours ?? [], HOUR_MS);
    await create(bundle, days[n] as number, known.days ?? [], known.failedDays ?? [], DAY_MS);
  }
  const statusOf = (
    workspaces: readonly string[],
    stride: Stride,
    [from, to]: [number, number],
    isUnavailable = false,
  ) =>
    rangeStatus(bundle.store.db, {
      sourceId,
      meter: "traces",
      groupings: ["user"],
      workspaceIds: workspaces,
      wanted: [{ stride, range: { start: DATA_START + from, end: DATA_START + to }, isUnavailable }],
    });
  return { bundle, workspaceIds, scopes, statusOf };
}

async function create(
  { reader }: StoreBundle,
  scopeId: number,
  states: readonly State[],
  failed: readonly boolean[],
  unit: number,
): Promise<void> {
  for (const [n, one] of states.entries()) {
    if (one === "none") continue;
    await reader.query("INSERT INTO usage.coverage VALUES ($1, $2, $3, $4, 1, now(), '{}')", [
      scopeId,
      at(n, unit),
      at(n + 1, unit),
      one === "final",
    ]);
  }
  for (const [n, isFailed] of failed.entries()) {
    if (!isFailed) continue;
    await reader.query(
      "INSERT INTO usage.failure VALUES ($1, $2, $3, 'failed', 'server_error', '', 1, 1, now(), $4)",
      [scopeId, at(n, unit), at(n + 1, unit), new Date(1_000 + n)],
    );
  }
}

function expectedOf({ hours, days, failedHours, failedDays }: Required<Known>, day: number): LoadStatus {
  const ofDay = hours.slice(day * 24, day * 24 + 24);
  if (failedDays[day]) return "failed";
  if (days[day] !== "none") return days[day] as LoadStatus;
  if (ofDay.every((hour) => hour === "final")) return "final";
  if (ofDay.every((hour) => hour !== "none")) return "provisional";
  return failedHours.slice(day * 24, day * 24 + 24).includes(true) ? "failed" : "missing";
}

test(`each whole day has the status that it has alone, in whatever longer stride it was asked for (seed ${SEED})`, async () => {
  const cells = fc.sample(knownTime, { seed: SEED, numRuns: 8 });
  const { workspaceIds, statusOf } = await setupCells(cells);
  for (const stride of ["day", "month"] as const) {
    const length = stride === "day" ? DAYS : DAYS_OF_MONTH;
    for (const [n, known] of cells.entries()) {
      const lines = await statusOf([workspaceIds[n] as string], stride, [0, length * DAY_MS]);
      const expected = Array.from({ length: DAYS }, (_, day) => expectedOf(known, day));
      for (const status of ["final", "provisional", "failed", "missing"] as const) {
        const shown = lines
          .filter((line) => line.status === status)
          .reduce((sum, line) => sum + line.buckets, 0);
        const later = status === "missing" ? length - DAYS : 0;
        expect(`${stride} ${n} ${status} ${shown}`).toBe(
          `${stride} ${n} ${status} ${expected.filter((one) => one === status).length + later}`,
        );
      }
    }
  }
});

test("a stride that the server lacks is not available where nothing is loaded, and a line has the earliest retry", async () => {
  const { workspaceIds, statusOf } = await setupCells([
    {
      hours: Array<State>(24).fill("final"),
      days: ["none", "none", "final"],
      failedDays: [true, true, true],
    },
    { days: ["final", "final", "final", "none"], failedDays: [false, true, false, true] },
  ]);
  const shown = async (n: number, days: number, isUnavailable: boolean) =>
    (await statusOf([workspaceIds[n] as string], "day", [0, days * DAY_MS], isUnavailable)).map((line) => [
      line.status,
      line.code,
      line.buckets,
      (line.first - DATA_START) / DAY_MS,
      (line.end - DATA_START) / DAY_MS,
      line.retryAt,
    ]);
  expect(await shown(0, 3, true)).toEqual([
    ["not_available", null, 1, 1, 2, null],
    ["failed", "server_error", 2, 0, 3, 1_000],
  ]);
  expect(await shown(1, 4, false)).toEqual([
    ["failed", "server_error", 2, 1, 4, 1_001],
    ["final", null, 2, 0, 3, null],
  ]);
});

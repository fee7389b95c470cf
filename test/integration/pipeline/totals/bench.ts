import { expect } from "vitest";
import { DAY_MS, floorToGrid, HOUR_MS, STRIDE_MS } from "../../../../src/core/domain/time/stride.ts";
import { checkTotals } from "../../../../src/core/pipeline/proof/check-totals.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { differences, inLedger, inStore } from "../../../support/tables.ts";

export const WORKSPACE = 1;

export async function loaded(days: number, standin: { align?: "window" | "epoch" } = {}): Promise<Bench> {
  const bench = await setup({
    days,
    workspaces: [WORKSPACE],
    hourlyForMs: HOUR_MS,
    standin: { scale: 0.34, ...standin },
  });
  await bench.fetch({
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
    reprocess: "missing",
  });
  return bench;
}

export const check = async (bench: Bench, reach: "month" | "quarter" | "all" = "all") => {
  const source = await bench.open();
  const before = bench.standin.requests.count;
  const result = await checkTotals(source, reach);
  return { ...result, seen: bench.standin.requests.count - before };
};

export const dayInside = ({ today }: Bench, weeksAgo: number, day = 3) =>
  floorToGrid(today - weeksAgo * STRIDE_MS.week, STRIDE_MS.week) + day * DAY_MS;

export const storeIsLedger = async (bench: Bench) => {
  const { standin, workspaceIds, dataStart: start, today: end } = bench;
  const ledger = inLedger(standin, { stride: "day", range: { start, end }, workspaceIds });
  expect(differences(await inStore(bench, ["day"]), ledger)).toEqual([]);
};

export const errorOf = (one: { storedTraces: number | null; controlTraces: number | null }) =>
  (one.controlTraces ?? 0) - (one.storedTraces ?? 0);

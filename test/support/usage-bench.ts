import { afterAll, beforeAll } from "vitest";
import { dayOf } from "../../src/domain/time/days.ts";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import { type Bench, farFromTheNextHour, openBench, setup } from "./source.ts";
import { openMigrated } from "./store.ts";

export type UsageBench = Bench & { readonly from: string; readonly to: string; readonly gap: string };

interface UsageOptions {
  readonly days: number;
  readonly gapAgo: number;
}

const HOURLY_FOR_MS = 2 * DAY_MS;

/** Days of usage, of which one workspace lacks one (`gap`), and hours of two days by workspace. */
export async function setupUsage(options: UsageOptions): Promise<UsageBench> {
  return withUsage(await setup({ days: options.days, hourlyForMs: HOURLY_FOR_MS }), options);
}

/** The same, loaded once for all tests of a file, which change nothing. `prepare` adds to it. */
export function shareUsage(
  options: UsageOptions,
  prepare: (bench: UsageBench) => Promise<void> = async () => {},
): () => UsageBench {
  let shared: UsageBench;
  const closers: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    const { store, url, drop } = await openMigrated();
    closers.push(drop);
    const now = await farFromTheNextHour();
    const bench = await openBench({ days: options.days, hourlyForMs: HOURLY_FOR_MS, now, store, url });
    closers.push(bench.close);
    shared = await withUsage(bench, options);
    await prepare(shared);
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });
  return () => shared;
}

async function withUsage(bench: Bench, { gapAgo }: UsageOptions): Promise<UsageBench> {
  const { today, dataStart, standin } = bench;
  const gap = today - gapAgo * DAY_MS;
  const want = (start: number, end: number) => ({ stride: "day" as const, range: { start, end } });
  const [, ...others] = standin.organisation.workspaces.map(({ id }) => id);
  await bench.fetch({
    wanted: [want(dataStart, gap), want(gap + DAY_MS, today + DAY_MS)],
    reprocess: "missing",
  });
  await bench.fetch({ wanted: [want(gap, gap + DAY_MS)], reprocess: "missing", workspaceIds: others });
  await bench.fetch({
    wanted: [{ stride: "hour", range: { start: today - 2 * DAY_MS, end: today } }],
    reprocess: "missing",
    groupings: ["workspace"],
  });
  return { ...bench, from: dayOf(dataStart), to: dayOf(today), gap: dayOf(gap) };
}

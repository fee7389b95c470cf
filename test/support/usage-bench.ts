import { dayOf } from "../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { share } from "./share.ts";
import { type Bench, setup } from "./source.ts";

export type UsageBench = Bench & { readonly from: string; readonly to: string; readonly gap: string };

interface UsageOptions {
  readonly days: number;
  readonly gapAgo: number;
}

export async function setupUsage({ days, gapAgo }: UsageOptions): Promise<UsageBench> {
  const bench = await setup({ days, hourlyForMs: 2 * DAY_MS });
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

export function shareUsage(
  options: UsageOptions,
  prepare: (bench: UsageBench) => Promise<void> = async () => {},
): () => UsageBench {
  return share(async () => {
    const bench = await setupUsage(options);
    await prepare(bench);
    return bench;
  });
}

import { GROUPINGS, type GroupBy } from "./usage/record.ts";

/** Traces of one workspace over one window, by each dimension. */
export interface WorkspaceReading {
  /** By project id. */
  readonly projects: Readonly<Record<string, number>>;
  /** Sums over the dimension. */
  readonly workspace: number;
  readonly user: number;
  readonly api_key: number;
}

/** What one dimension shows of a probe's traffic. */
export interface ProbeFigure {
  readonly groupBy: GroupBy;
  /** By how much the figure rose. */
  readonly billed: number;
  /** By how much the other projects rose and fell meanwhile; both 0 where nobody else can be in the rise. */
  readonly othersAdded: number;
  readonly othersRemoved: number;
  /** Traces too many, or, negative, too few, whatever others did. */
  readonly difference: number;
}

/**
 * Compares what was sent with what was billed, in one workspace or in several together.
 *
 * The project is the probe's own, so its rise must be what was sent. The other dimensions mix in the traffic of others,
 * which is at most the rise of their projects. So a figure must lie between what was sent less what other projects lost,
 * and what was sent plus what they gained. Without other traffic that is one number.
 *
 * This is sound only if projects were read first before the traffic, and last after it: the rise of other projects then
 * spans at least the time between the readings of the other dimensions.
 */
export function compareProbe(probe: {
  readonly before: readonly WorkspaceReading[];
  readonly after: readonly WorkspaceReading[];
  readonly projectId: string | undefined;
  readonly expected: number;
}): ProbeFigure[] {
  const { before, after, projectId, expected } = probe;
  const rises = riseByProject(before, after);
  const others = [...rises].filter(([id]) => id !== projectId).map(([, rise]) => rise);
  const othersAdded = sum(others.map((rise) => Math.max(0, rise)));
  const othersRemoved = sum(others.map((rise) => Math.max(0, -rise)));
  return GROUPINGS.map((groupBy) => {
    if (groupBy === "project") {
      const billed = projectId === undefined ? 0 : (rises.get(projectId) ?? 0);
      return { groupBy, billed, othersAdded: 0, othersRemoved: 0, difference: billed - expected };
    }
    const billed = sum(after.map((one) => one[groupBy])) - sum(before.map((one) => one[groupBy]));
    const least = expected - othersRemoved;
    const most = expected + othersAdded;
    const difference = billed < least ? billed - least : Math.max(0, billed - most);
    return { groupBy, billed, othersAdded, othersRemoved, difference };
  });
}

function riseByProject(
  before: readonly WorkspaceReading[],
  after: readonly WorkspaceReading[],
): Map<string, number> {
  const rises = new Map<string, number>();
  const add = (readings: readonly WorkspaceReading[], sign: 1 | -1) => {
    for (const { projects } of readings) {
      for (const [id, traces] of Object.entries(projects))
        rises.set(id, (rises.get(id) ?? 0) + sign * traces);
    }
  };
  add(after, 1);
  add(before, -1);
  return rises;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

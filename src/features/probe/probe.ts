import type { GroupBy } from "../../core/domain/usage/record.ts";

export interface WorkspaceReading extends Record<"project" | "user" | "api_key", Record<string, number>> {
  workspace: number;
}
export type ProbeReadings = ReadonlyMap<string, WorkspaceReading>;

export interface Rise {
  readonly id: string;
  readonly traces: number;
}

export interface ProbeFigure {
  readonly groupBy: GroupBy;
  /** The id whose usage must rise. Null: unknown. */
  readonly expectedId: string | null;
  /** Rise of usage: in the project dimension that of the probe's project, otherwise that of the workspace. */
  readonly billed: number;
  /** Traces too many or (negative) too few, in total or for the expected id, whatever other traffic there was. */
  readonly difference: number;
  readonly rises: readonly Rise[];
}

export interface ProbeComparison {
  /**
   * `lacking`: some traces are not billed yet. `unexplained`: all are, and a dimension has more, perhaps of other projects that
   * do not show them yet. `billed`: all are, to any id, or the project has too many.
   */
  readonly progress: "lacking" | "unexplained" | "billed";
  readonly figures: readonly ProbeFigure[];
  /** Rise and fall of the workspace's other projects. That many traces of other dimensions may be theirs. */
  readonly others: { readonly added: number; readonly removed: number };
}

/**
 * Compares the traces that were sent with those that were billed, in one workspace (`home`) or, until it is known, in all.
 * `user` and `key` must be billed: an id, `(none)`, or `...` and the end of a short key. The project is the probe's own, so it
 * must rise by the number sent. Other dimensions include other traffic, which is at most the rise of other projects. So the
 * dimension and its expected id must rise by the number sent, less the loss of other projects at least and plus their gain at
 * most. Other ids may rise by that gain, other workspaces by the rise of their own projects. This is valid only if projects are
 * read first before the traffic and last after it: their readings then enclose those of other dimensions.
 */
export function compareProbe(probe: {
  readonly before: ProbeReadings;
  readonly after: ProbeReadings;
  readonly home: string | undefined;
  readonly projectId: string | undefined;
  readonly expected: number;
  readonly user: string;
  readonly key: string;
}): ProbeComparison {
  const { before, after, home, projectId, expected } = probe;
  const compared = home === undefined ? [...after.keys()] : [home];
  const risesOf = (groupBy: "project" | "user" | "api_key", workspaceIds = compared) => {
    const rises = new Map<string, number>();
    const add = (readings: ProbeReadings, sign: 1 | -1) => {
      const counts = workspaceIds.flatMap((each) => Object.entries(readings.get(each)?.[groupBy] ?? {}));
      for (const [id, traces] of counts)
        rises.set(id || "(none)", (rises.get(id || "(none)") ?? 0) + sign * traces);
    };
    add(after, 1);
    add(before, -1);
    return Array.from(rises, ([id, traces]): Rise => ({ id, traces }));
  };
  const othersOf = (workspaceIds?: string[]) =>
    risesOf("project", workspaceIds).filter(({ id }) => id !== projectId);
  const added = gainOf(othersOf());
  const removed = added - sum(othersOf());
  /** Traces by which a rise is out of the possible range. */
  const outside = (rise: number) =>
    Math.min(0, rise - (expected - removed)) || Math.max(0, rise - (expected + added));

  const inWorkspaces = Array.from(after, ([id, reading]): Rise => {
    return { id, traces: reading.workspace - (before.get(id)?.workspace ?? 0) };
  });
  const byWorkspace = (): ProbeFigure => {
    const billed = sum(inWorkspaces.filter(({ id }) => compared.includes(id)));
    const unexplained = inWorkspaces
      .filter(({ id }) => !compared.includes(id))
      .map(({ id, traces }) => ({ id, traces: traces - gainOf(othersOf([id])) }));
    const difference = outside(billed) || gainOf(unexplained);
    const rises = largest(inWorkspaces);
    return { groupBy: "workspace", expectedId: home ?? null, billed, difference, rises };
  };
  const byProject = (): ProbeFigure => {
    const rises = risesOf("project");
    const billed = sum(rises.filter(({ id }) => id === projectId));
    const difference = billed - expected;
    return { groupBy: "project", expectedId: projectId ?? null, billed, difference, rises: largest(rises) };
  };
  const bySender = (groupBy: "user" | "api_key", wanted: string): ProbeFigure => {
    const rises = risesOf(groupBy);
    const billed = sum(rises);
    const [own] = rises.filter(({ id }) => isWanted(id, wanted)).sort((a, b) => b.traces - a.traces);
    const surplus = gainOf(rises.filter(({ id }) => id !== own?.id)) - added;
    const difference = outside(billed) || outside(own?.traces ?? 0) || Math.max(0, surplus);
    return { groupBy, expectedId: own?.id ?? wanted, billed, difference, rises: largest(rises) };
  };
  const project = byProject();
  const figures = [byWorkspace(), project, bySender("user", probe.user), bySender("api_key", probe.key)];
  const progressOf = (): ProbeComparison["progress"] => {
    if (project.difference > 0) return "billed";
    const leastOf = (figure: ProbeFigure) => expected - (figure === project ? 0 : removed);
    if (figures.some((figure) => figure.billed < leastOf(figure))) return "lacking";
    return figures.some(({ difference }) => difference > 0) ? "unexplained" : "billed";
  };
  return { progress: progressOf(), figures, others: { added, removed } };
}

/** A UUID may be written in capitals. */
function isWanted(id: string, wanted: string): boolean {
  if (wanted.startsWith("...")) return id.endsWith(wanted.slice(3));
  return id === wanted || id === wanted.toLowerCase();
}

function largest(rises: readonly Rise[]): Rise[] {
  const changed = rises.filter(({ traces }) => traces !== 0);
  return changed.sort((a, b) => Math.abs(b.traces) - Math.abs(a.traces)).slice(0, 10);
}

function gainOf(rises: readonly Rise[]): number {
  return sum(rises.filter(({ traces }) => traces > 0));
}

function sum(rises: readonly Rise[]): number {
  return rises.reduce((total, { traces }) => total + traces, 0);
}

import { GROUPINGS, type GroupBy } from "../usage/record.ts";

type Counts = Readonly<Record<string, number>>;

/** Traces of one workspace over one window, by each dimension; by id where the dimension has several. */
export interface WorkspaceReading {
  readonly workspace: number;
  readonly project: Counts;
  readonly user: Counts;
  readonly api_key: Counts;
}
/** By workspace id. */
export type ProbeReadings = ReadonlyMap<string, WorkspaceReading>;

/** Whom a probe's traces must be billed to: an id, `(none)`, or `...` and the end of a short key. */
export interface ProbeSender {
  readonly user: string;
  readonly key: string;
}

/** What one dimension shows of a probe's traffic. */
export interface ProbeFigure {
  readonly groupBy: GroupBy;
  /** The id that must rise; null where it is not known. */
  readonly expectedId: string | null;
  /** By how much the figure rose. */
  readonly billed: number;
  /** By how much the other projects rose and fell meanwhile; both 0 where nobody else can be in the rise. */
  readonly othersAdded: number;
  readonly othersRemoved: number;
  /** Traces too many or, negative, too few, in all or for the expected id, whatever others did. */
  readonly difference: number;
  /** Ids whose figure changed, the largest change first; at most ten. */
  readonly rises: readonly { readonly id: string; readonly traces: number }[];
}

/** Few enough for a message. */
const RISES_SHOWN = 10;

/**
 * Compares what was sent with what was billed, in one workspace (`home`) or, until it is known, in several together.
 *
 * The project is the probe's own, so its rise must be what was sent. The other dimensions mix in the traffic of others,
 * which is at most the rise of their projects. So the dimension, and the one id that is expected, must rise by what was
 * sent less what other projects lost, to what was sent plus what they gained; other ids may rise by what those gained.
 * Without other traffic that is one number, and every id is decided. With it the probe's traces cannot be told from
 * others'. Another workspace may rise by what its own projects do.
 *
 * This is sound only if projects were read first before the traffic, and last after it: the rise of other projects then
 * spans at least the time between the readings of the other dimensions.
 */
export function compareProbe(probe: {
  readonly before: ProbeReadings;
  readonly after: ProbeReadings;
  readonly home: string | undefined;
  readonly projectId: string | undefined;
  readonly expected: number;
  readonly sender: ProbeSender;
}): ProbeFigure[] {
  const { before, after, home, projectId, expected, sender } = probe;
  const all = [...after.keys()];
  const compared = home === undefined ? all : [home];
  const risesOf = (groupBy: "project" | "user" | "api_key", workspaceIds: readonly string[]) =>
    riseById(
      workspaceIds.map((id) => before.get(id)?.[groupBy] ?? {}),
      workspaceIds.map((id) => after.get(id)?.[groupBy] ?? {}),
    );
  const othersOf = (workspaceIds: readonly string[]) => {
    const others = [...risesOf("project", workspaceIds)].filter(([id]) => id !== projectId);
    return { added: gain(others), removed: loss(others) };
  };
  const others = othersOf(compared);
  const bounds = [expected - others.removed, expected + others.added] as const;
  const found = {
    workspace: () => {
      const rises = new Map(
        all.map((id) => [id, (after.get(id)?.workspace ?? 0) - (before.get(id)?.workspace ?? 0)]),
      );
      const billed = sum(compared.map((id) => rises.get(id) ?? 0));
      // What their own projects do not account for.
      const elsewhere = all
        .filter((id) => !compared.includes(id))
        .map((id) => Math.max(0, (rises.get(id) ?? 0) - othersOf([id]).added));
      const difference = outside(billed, ...bounds) || sum(elsewhere);
      return { expectedId: home ?? null, billed, difference, rises };
    },
    project: () => {
      const rises = risesOf("project", all);
      const billed = projectId === undefined ? 0 : (rises.get(projectId) ?? 0);
      return { expectedId: projectId ?? null, billed, difference: billed - expected, rises };
    },
    user: () => bySender("user", sender.user),
    api_key: () => bySender("api_key", sender.key),
  };
  const bySender = (groupBy: "user" | "api_key", wanted: string) => {
    const rises = risesOf(groupBy, compared);
    const billed = sum(rises.values());
    const [own] = [...rises].filter(([id]) => isWanted(id, wanted)).sort((a, b) => b[1] - a[1]);
    const surplus = gain([...rises].filter(([id]) => id !== own?.[0])) - others.added;
    const difference =
      outside(billed, ...bounds) || outside(own?.[1] ?? 0, ...bounds) || Math.max(0, surplus);
    return { expectedId: own?.[0] ?? wanted, billed, difference, rises };
  };
  return GROUPINGS.map((groupBy) => {
    const { rises, ...figure } = found[groupBy]();
    const [othersAdded, othersRemoved] = groupBy === "project" ? [0, 0] : [others.added, others.removed];
    const changed = [...rises].filter(([, traces]) => traces !== 0);
    const shown = changed.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, RISES_SHOWN);
    return {
      groupBy,
      ...figure,
      othersAdded,
      othersRemoved,
      rises: shown.map(([id, traces]) => ({ id, traces })),
    };
  });
}

/**
 * `lacking`: some of what was sent is not billed yet. `unexplained`: all of it is, and more in a dimension, which may be
 * other people's traces once their projects show them. `billed`: all of it is, to whomever, or the project has too much.
 */
export function progressOf(
  figures: readonly ProbeFigure[],
  expected: number,
): "lacking" | "unexplained" | "billed" {
  if (figures.some(({ groupBy, difference }) => groupBy === "project" && difference > 0)) return "billed";
  if (figures.some(({ billed, othersRemoved }) => billed < expected - othersRemoved)) return "lacking";
  return figures.some(({ difference }) => difference > 0) ? "unexplained" : "billed";
}

/** By how much a figure lies outside of what is possible. */
function outside(rise: number, least: number, most: number): number {
  return rise < least ? rise - least : Math.max(0, rise - most);
}

/** A UUID may be configured in capitals. */
function isWanted(id: string, wanted: string): boolean {
  return wanted.startsWith("...")
    ? id.endsWith(wanted.slice(3))
    : id === wanted || id === wanted.toLowerCase();
}

function riseById(before: readonly Counts[], after: readonly Counts[]): Map<string, number> {
  const rises = new Map<string, number>();
  const add = (counts: readonly Counts[], sign: 1 | -1) => {
    for (const [id, traces] of counts.flatMap((one) => Object.entries(one))) {
      rises.set(id || "(none)", (rises.get(id || "(none)") ?? 0) + sign * traces);
    }
  };
  add(after, 1);
  add(before, -1);
  return rises;
}

type Rise = readonly [id: string, traces: number];
const gain = (rises: readonly Rise[]) => sum(rises.map(([, rise]) => Math.max(0, rise)));
const loss = (rises: readonly Rise[]) => sum(rises.map(([, rise]) => Math.max(0, -rise)));

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((all, one) => all + one, 0);
}

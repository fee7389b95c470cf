import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import type { Meter } from "../../../../src/core/domain/usage/meter.ts";
import type { Command, Question, Row } from "./commands.ts";

const [A, B, ALL] = [1, 2, 7];
const BY_WORKSPACE = { groupBy: "workspace" } as const;
const FROM_FIRST_DAY = { groupBy: "project", stride: "day", at: 0, length: 2 } as const;

const row = (workspace: number, bucket: number, id: string, traces: number): Row => ({
  workspace,
  bucket,
  id,
  name: null,
  traces,
});
type Requested = Partial<Question> & { readonly advance?: number };
const about = (workspaces: number, rows: readonly Row[], { advance = 1_000, ...requested }: Requested) => ({
  advance,
  question: { ...FROM_FIRST_DAY, workspaces, ...requested },
  rows,
});
const load = (workspaces: number, rows: readonly Row[], requested: Requested = {}): Command => ({
  do: "load",
  fault: null,
  ...about(workspaces, rows, requested),
});
const request = (workspaces: number, rows: readonly Row[], requested: Requested = {}): Command => ({
  do: "request",
  ...about(workspaces, rows, requested),
});
type Naming = Partial<Extract<Command, { do: "name" }>>;
const name = (named: number, how: Naming = {}): Command => ({
  do: "name",
  advance: 1_000,
  late: 0,
  named,
  isStatistics: false,
  ...how,
});
const list = (listed: number): Command => ({
  do: "list",
  advance: 1_000,
  late: 0,
  listed,
  names: [3, 3, 3],
  deleted: false,
});
const deliver = (pick: number, again = false): Command => ({ do: "deliver", pick, again, fault: null });
const fail: Command = { do: "fail", pick: 0 };
const confirm = (rows: readonly Row[] | "same", listed = ALL): Command => ({
  do: "confirm",
  advance: 1_000,
  pick: 0,
  listed,
  rows,
});
const settle = (afterMs: number): Command => ({ do: "settle", afterMs });

const FIRST = [row(0, 0, "p1", 5), row(0, 1, "p1", 6), row(0, 2, "p2", 7), row(1, 0, "", 8)];
const SECOND = [
  row(0, 0, "p1", 5),
  row(0, 1, "p1", 9),
  row(0, 2, "p1", 1),
  row(0, 1, "", 2),
  row(1, 1, "", 0),
  row(1, 0, "", 8),
];

const OF_TRACES: Command[][] = [
  [
    name(ALL),
    load(A | B, FIRST, { advance: DAY_MS }),
    load(A | B, SECOND),
    load(A | B, SECOND),
    load(A | B, FIRST, { advance: 2 * DAY_MS }),
    load(A | B, SECOND),
  ],
  [
    name(ALL),
    request(A | B, FIRST),
    request(A, [row(0, 0, "p1", 6)], { at: 1, length: 0 }),
    deliver(1, true),
    deliver(1),
    deliver(0),
    load(A | B, FIRST),
  ],
  [
    name(ALL),
    settle(0),
    load(A, [row(0, 0, "p1", 5)], { length: 1 }),
    load(B, [row(0, 0, "", 8)], { length: 0 }),
    settle(30 * DAY_MS),
    load(A | B, FIRST),
    load(A | B, SECOND),
  ],
  [
    name(ALL),
    request(A, [], { length: 0 }),
    fail,
    request(A, FIRST),
    request(A, [], { at: 1, length: 0 }),
    { do: "fail", pick: 1 },
    deliver(0),
    request(A | B, [], { advance: HOUR_MS }),
    fail,
    request(A, [], { length: 0 }),
    fail,
    request(A | B, []),
    fail,
    load(A | B, FIRST),
  ],
  // All of a workspace goes, and the second response says so of another one.
  [
    name(ALL),
    load(A | B, [row(0, 0, "p1", 5), row(1, 1, "", 8)]),
    load(A | B, [row(1, 1, "", 9)]),
    confirm([row(0, 0, "p1", 5)]),
    confirm("same"),
    load(A | B, [row(1, 1, "", 9)]),
    confirm("same"),
    load(A | B, []),
    confirm("same", 0),
  ],
  [
    name(ALL),
    load(A | B, [row(1, 1, "", 8)]),
    load(A | B, [row(1, 1, "", 8)], { advance: 600_001 }),
    name(ALL),
    load(A | B, [row(1, 1, "", 8)]),
    list(B),
    load(A | B, [row(1, 1, "", 9)]),
    load(A, []),
    list(A | B),
    name(ALL),
    load(A | B, [row(0, 0, "p1", 4), row(1, 1, "", 9)], { advance: DAY_MS }),
  ],
  [
    request(A | B, [row(0, 0, "p1", 5), row(1, 1, "", 8)]),
    load(A, [row(0, 0, "p1", 6)]),
    deliver(0),
    load(B, []),
  ],
  ...[true, false].map((isStatistics) => [
    name(ALL, { isStatistics }),
    load(A, [], BY_WORKSPACE),
    name(ALL, { isStatistics }),
    list(B),
    list(B),
  ]),
  [
    name(ALL),
    load(A, [], { ...BY_WORKSPACE, stride: "hour" }),
    load(A, [], { ...BY_WORKSPACE, stride: "hour", at: 3, length: 0 }),
    list(ALL),
    load(A, [], BY_WORKSPACE),
    list(B),
  ],
  [
    name(ALL),
    request(A, [row(0, 0, "p1", 5)]),
    name(0),
    deliver(0),
    load(A, []),
    list(B),
    name(A, { late: 60_000 }),
    load(A, []),
    request(A, []),
    list(A | B),
    name(A),
    deliver(0),
    load(A, []),
  ],
  [
    load(A, [row(0, 0, "p1", 5)]),
    name(0),
    name(0, { advance: HOUR_MS }),
    name(0, { advance: HOUR_MS }),
    load(A, [row(0, 0, "p1", 6)]),
    name(A, { advance: HOUR_MS }),
    name(0, { isStatistics: true }),
    name(0),
  ],
];

const ZEROS_ALONE: Command[] = [
  name(ALL),
  load(A | B, [row(0, 0, "p1", 5), row(0, 0, "p2", 2), row(1, 1, "", 8)]),
  load(A | B, [row(0, 0, "p1", 0), row(0, 0, "p2", 0), row(1, 1, "", 8)]),
  load(A | B, [row(0, 0, "p1", 1), row(0, 0, "p2", 0), row(1, 1, "", 8)]),
  load(A | B, [row(0, 0, "p1", 0), row(0, 0, "p2", 0), row(1, 1, "", 8)]),
  confirm("same"),
];

export const FIXED: [Command[], Meter][] = [
  ...OF_TRACES.map((commands): [Command[], Meter] => [commands, "traces"]),
  [ZEROS_ALONE, "traces"],
  [ZEROS_ALONE, "longlived"],
];

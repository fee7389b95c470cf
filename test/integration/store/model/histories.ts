import fc from "fast-check";
import { DAY_MS, HOUR_MS, type Stride } from "../../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../../src/core/domain/usage/record.ts";
import { type Command, NAMES, type Question, type Row } from "./commands.ts";
import type { Fault } from "./statements.ts";

const advance = fc.constantFrom(1_000, 1_000, 60_000, 600_000, 600_001, 5 * HOUR_MS, DAY_MS);

const row: fc.Arbitrary<Row> = fc.record({
  workspace: fc.nat(2),
  bucket: fc.oneof(fc.nat(1), fc.nat(17)),
  // A key may appear more than once in a response, under several names.
  id: fc.constantFrom("", "p1", "p2"),
  name: fc.constantFrom(null, ...NAMES),
  traces: fc.constantFrom(0, 1, 2, 3, 500, 2 ** 33 + 7),
});
const rows = fc.oneof(
  { weight: 4, arbitrary: fc.array(row, { minLength: 1, maxLength: 6 }) },
  { weight: 1, arbitrary: fc.constant<Row[]>([]) },
);

/** `scope` picks one of the few scopes of the history: over all scopes, its responses would hardly ever overlap. */
const question = fc.record({
  scope: fc.nat(1),
  at: fc.nat(3),
  length: fc.nat(2),
  workspaces: fc.constantFrom(1, 1, 2, 3, 5, 7),
});
type Aimed = Command<Omit<Question, "groupBy" | "stride"> & { readonly scope: number }>;

const fault = fc.option(
  fc.record({
    kind: fc.constantFrom<Fault["kind"][]>("die", "kill", "lose"),
    at: fc.integer({ min: 1, max: 28 }),
  }),
  { nil: null, freq: 2 },
);

const pick = fc.nat(3);
const list = fc.record({
  do: fc.constant("list" as const),
  advance,
  late: fc.constantFrom(0, 0, 61_000, 700_000),
  listed: fc.constantFrom(7, 7, 7, 6, 1, 0),
  names: fc.array(fc.nat(NAMES.length), { minLength: 3, maxLength: 3 }),
  deleted: fc.boolean(),
});
const command: fc.Arbitrary<Aimed> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ do: fc.constant("load" as const), advance, question, rows, fault }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("request" as const), advance, question, rows }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("deliver" as const), pick, again: fc.boolean(), fault }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("confirm" as const),
      advance,
      pick,
      listed: fc.constantFrom(7, 7, 6, 0),
      rows: fc.oneof(fc.constant("same" as const), rows),
    }),
  },
  { weight: 2, arbitrary: list },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("name" as const),
      advance,
      late: fc.constantFrom(0, 0, 61_000, 700_000),
      named: fc.constantFrom(7, 7, 6, 1, 0),
      isStatistics: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      afterMs: fc.constantFrom(0, DAY_MS, 30 * DAY_MS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("capability" as const),
      stride: fc.constantFrom("hour" as const, "day" as const),
      known: fc.boolean(),
    }),
  },
);

const FOCUS: (readonly [GroupBy, Stride][])[] = [
  [
    ["workspace", "hour"],
    ["workspace", "day"],
  ],
  [
    ["workspace", "day"],
    ["project", "day"],
  ],
  [
    ["workspace", "week"],
    ["workspace", "day"],
  ],
  [
    ["project", "hour"],
    ["project", "day"],
  ],
  [["project", "hour"]],
  [["project", "day"]],
  [["project", "week"]],
  [
    ["user", "hour"],
    ["user", "day"],
  ],
  [
    ["api_key", "hour"],
    ["api_key", "day"],
  ],
];

export const history: fc.Arbitrary<Command[]> = fc
  .record({
    focus: fc.constantFrom(...FOCUS),
    listed: fc.option(list, { freq: 5 }),
    commands: fc.array(command, { minLength: 1, maxLength: 20, size: "max" }),
  })
  .map(({ focus, listed, commands }) => [
    ...(listed === null ? [] : [{ ...listed, listed: 7, late: 0 }]),
    ...commands.map((one) => (one.do === "load" || one.do === "request" ? aim(one, focus) : one)),
  ]);

function aim(
  command: Aimed & { do: "load" | "request" },
  focus: readonly (readonly [GroupBy, Stride])[],
): Command {
  const { scope, ...question } = command.question;
  const [groupBy, stride] = focus[scope % focus.length] as readonly [GroupBy, Stride];
  return { ...command, question: { ...question, groupBy, stride } };
}

import { expect, onTestFinished, test, vi } from "vitest";
import { createOutput, fitted, instant, table, withoutZeros } from "../../../src/cli/report/output.ts";
import { UsageError } from "../../../src/errors.ts";
import { controlsIn } from "../../support/controls.ts";

test("an instant is shown in its shortest form", () => {
  expect(instant(Date.UTC(2026, 2, 1))).toBe("2026-03-01");
  expect(instant(Date.UTC(2026, 2, 1, 5))).toBe("2026-03-01T05:00Z");
});

test("a table aligns numbers right, groups their digits and shows null as a dash", () => {
  const lines = table(
    ["name", "traces"],
    [
      ["a", 1234567],
      ["long name", null],
    ],
  ).split("\n");
  expect(lines.map((line) => line.trimEnd())).toEqual([
    "name          traces",
    "a          1,234,567",
    "long name          -",
  ]);
});

test("nothing that a server sent controls the terminal, and --json stays exact", () => {
  const nasty = "\u001b[2J\u009b31m\u202ex";
  const written: string[] = [];
  for (const to of ["stdout", "stderr"] as const) {
    const spied = vi
      .spyOn(process[to], "write")
      .mockImplementation((piece) => written.push(String(piece)) > 0);
    onTestFinished(() => spied.mockRestore());
  }
  const output = createOutput({ json: false });
  output.data(nasty, (name) => `name: ${name}\n${table(["name"], [[name]])}`);
  output.note(`new: ${nasty}`);
  createOutput({ json: true }).data({ name: nasty }, () => "");
  for (const piece of written) expect(controlsIn(piece)).toEqual([]);
  expect(JSON.parse(written.at(-1) ?? "")).toEqual({ name: nasty });
});

test("a cell is one line, and a nested value is shown as JSON", () => {
  const limits = { deep: ["x"] } as unknown as string;
  const lines = table(["name", "limits"], [["a\nb  c", limits]]).split("\n");
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain('a\\u000ab  c  {"deep":["x"]}');
});

/** What `work` writes to stdout and stderr, with `--json`. */
function saidBy(work: (output: ReturnType<typeof createOutput>) => void): string[] {
  const written = (["stdout", "stderr"] as const).map((to) => {
    return vi.spyOn(process[to], "write").mockReturnValue(true);
  });
  work(createOutput({ json: true }));
  const said = written.flatMap((spied) => spied.mock.calls.map(([line]) => String(line)));
  for (const spied of written) spied.mockRestore();
  return said;
}

test("--json shows all instants alike, however the code holds them", () => {
  const at = "2026-03-01T05:00:00Z";
  const forms = [
    { start: Date.UTC(2026, 2, 1, 5), bucketStart: at },
    { from: "2026-03-01T05:00Z", to: "2026-03-01" },
    { nextRetry: new Date(at), name: "2026-03-01", firstDay: "2026-03-01" },
  ];
  expect(JSON.parse(saidBy((output) => output.data(forms, () => ""))[0] ?? "")).toEqual([
    { start: at, bucketStart: at },
    { from: at, to: "2026-03-01T00:00:00Z" },
    { nextRetry: at, name: "2026-03-01", firstDay: "2026-03-01" },
  ]);
});

test("--json writes errors and notes as objects, each on a line", () => {
  const lines = saidBy((output) => {
    output.note("Two\nlines.");
    output.error(new UsageError({ code: "a_code", message: "It is wrong.", next: "Correct it." }), "eu");
    output.error(Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" }));
    output.error(new TypeError("x is undefined"));
  });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { note: "Two\nlines." },
    { source: "eu", code: "a_code", message: "It is wrong.", hint: "Correct it." },
    {
      code: "postgres_unreachable",
      message: expect.stringContaining("ECONNREFUSED"),
      hint: "See whether it runs.",
    },
    {
      code: "unexpected",
      message: "Unexpected TypeError: x is undefined",
      hint: expect.any(String),
      stack: expect.stringMatching(/^ {4}at /),
    },
  ]);
  for (const line of lines) expect(line.indexOf("\n")).toBe(line.length - 1);
});

test("columns with nothing but zeros, or nothing at all, are left out", () => {
  const head = ["dimension", "failed", "retired", "reason"];
  const rows = [
    ["user", 0, 3, null],
    ["project", 0, 0, "-"],
  ];
  expect(withoutZeros(head, rows)).toEqual([
    ["dimension", "retired"],
    [
      ["user", 3],
      ["project", 0],
    ],
  ]);
});

test("the longest texts are cut until the table fits; a short one never is", () => {
  const rows = [
    ["kind", "id", "name"],
    ["differs", "4340c6dc-954e-4ef4-a1e8-f73cc1826017", "search"],
  ];
  expect(fitted(rows, 30)).toEqual([
    ["kind", "id", "name"],
    ["differs", "4340c6dc-954…", "search"],
  ]);
  expect(fitted(rows, 53)).toEqual(rows);
  expect(fitted(rows, undefined)).toEqual(rows);
  expect(fitted(rows, 4)[1]).toEqual(["differs", "4340c6d…", "search"]);
});

const ID = "4340c6dc-954e-4ef4-a1e8-f73cc1826017";

/** Standard output as it would be on such a terminal, until the test ends. */
function setTerminal(terminal: { isTTY: boolean; columns: number }) {
  const { isTTY, columns } = process.stdout;
  onTestFinished(() => void Object.assign(process.stdout, { isTTY, columns }));
  Object.assign(process.stdout, terminal);
}

test.each([
  [true, 80],
  [false, 2 * 36 + 9 + 2 * 2],
])("a table is no wider than the terminal, and whole in a pipe (terminal: %j)", (isTTY, width) => {
  setTerminal({ isTTY, columns: 80 });
  const row = [ID, ID, 1_234_567];
  const lines = table(["workspace", "project", "traces"], [row, row]).split("\n");
  expect(Math.max(...lines.map((line) => line.length))).toBe(width);
});

test("one row that is wider than the terminal is a list, with its ids whole", () => {
  setTerminal({ isTTY: true, columns: 80 });
  expect(table(["state", "context", "task"], [["completed", ID, ID]])).toBe(
    `state    completed\ncontext  ${ID}\ntask     ${ID}`,
  );
  expect(table(["state", "task"], [["completed", ID]]).split("\n")).toHaveLength(2);
});

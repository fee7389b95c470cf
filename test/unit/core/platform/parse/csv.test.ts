import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ExportRow } from "../../../../../src/core/domain/usage/export.ts";
import type { GroupBy } from "../../../../../src/core/domain/usage/record.ts";
import { CarefulCsv, NotPlain, PlainCsv } from "../../../../../src/core/platform/parse/csv-cells.ts";
import { ExportReader } from "../../../../../src/core/platform/parse/export-reader.ts";
import { ResponseError } from "../../../../../src/core/platform/parse/response-error.ts";

const COLUMNS =
  "Time Bucket Start,Time Bucket End,Workspace ID,Workspace Name,Project ID,Project Name,User ID,User Email,API Key Short Key,Traces";
const HEADER = `${COLUMNS}\n`;
const DAY = "2026-01-05T00:00:00Z,2026-01-06T00:00:00Z";
const START = Date.UTC(2026, 0, 5);
const END = Date.UTC(2026, 0, 6);

interface How {
  readonly groupBy?: GroupBy;
  readonly proved?: boolean;
  readonly Cutter?: typeof PlainCsv | typeof CarefulCsv;
}

async function read(
  pieces: string | readonly Buffer[],
  { groupBy = "project", proved = true, Cutter = CarefulCsv }: How = {},
) {
  const rows: ExportRow[] = [];
  const reader = new ExportReader(Cutter, { meter: "traces", groupBy }, (batch) => rows.push(...batch));
  for (const piece of Array.isArray(pieces) ? pieces : [Buffer.from(pieces as string)])
    await reader.push(piece);
  await reader.end(proved);
  return rows;
}

async function refusal(pieces: string | readonly Buffer[], how?: How): Promise<ResponseError> {
  const error = await read(pieces, how).then(
    (rows) => new Error(`expected a refusal, got ${JSON.stringify(rows)}`),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ResponseError);
  return error as ResponseError;
}

function project(id: string, name: string, traces: string | number): string {
  return `${DAY},,,${id},${name},,,,${traces}`;
}

describe("An export read with csv-parse", () => {
  it.each([
    ["workspace", `${DAY},W1,Work,,,,,,3`, "W1", "W1", "Work"],
    ["project", `${DAY},,,P1,Proj,,,,3`, null, "P1", "Proj"],
    ["project", `${DAY},W1,,P1,Proj,,,,3`, "W1", "P1", "Proj"],
    ["user", `${DAY},,,,,U1,a@example.com,,3`, null, "U1", "a@example.com"],
    ["user", `${DAY},,,,,,a@example.com,,3`, null, "", null],
    ["api_key", `${DAY},,,,,,,lsv2...Ab,3`, null, "lsv2...Ab", null],
    ["project", `${DAY},,,,,,,,3`, null, "", null],
  ] as const)("reads a row of %s", async (groupBy, row, workspaceId, dimensionId, dimensionName) => {
    expect(await read(HEADER + row, { groupBy })).toEqual([
      { bucketStart: START, bucketEnd: END, workspaceId, dimensionId, dimensionName, traces: 3, line: 2 },
    ]);
  });

  it("finds its columns by name, in any order, and ignores others", async () => {
    const rows = await read(
      `Traces,New,Project Name,Time Bucket End,Project ID,Time Bucket Start\n5,x,N,2026-01-06T00:00:00Z,P,2026-01-05T00:00:00Z\n`,
    );
    expect(rows).toMatchObject([
      {
        bucketStart: START,
        bucketEnd: END,
        dimensionId: "P",
        dimensionName: "N",
        traces: 5,
        workspaceId: null,
      },
    ]);
  });

  it("may have CRLF, LF, a byte order mark, empty lines and quotes, and has correct lines", async () => {
    const body = `\u{FEFF}${COLUMNS}\r\n${project('"P,1"', '"a ""b""\r\n漢\nc"', 1)}\r\n\r\n${project("P2", "x", 2)}\n${project("P3", "y", 3)}\r\n`;
    const expected = [
      { dimensionId: "P,1", dimensionName: 'a "b"\r\n漢\nc', traces: 1, line: 2 },
      { dimensionId: "P2", traces: 2, line: 6 },
      { dimensionId: "P3", traces: 3, line: 7 },
    ];
    expect(await read(body)).toMatchObject(expected);
    expect(await read(Array.from(Buffer.from(body), (byte) => Buffer.from([byte])))).toMatchObject(expected);
  });

  it.each([
    ["\t=1+1", "=1+1"],
    ["\t+1", "+1"],
    ["\t-1", "-1"],
    ["\t@a", "@a"],
    ["\t\tx", "\tx"],
    ['"\t\rx"', "\rx"],
    ["\tx", "\tx"],
    ["\t", "\t"],
    ["=1", "=1"],
    [" \t=1", " \t=1"],
  ])("loses the guard of a cell that a spreadsheet would run: %j", async (cell, name) => {
    expect((await read(`${HEADER}${project(cell, cell, 1)}\n`))[0]).toMatchObject({
      dimensionId: name,
      dimensionName: name,
    });
  });

  it.each(["0", "9007199254740991"])("may have %s traces", async (traces) => {
    expect((await read(HEADER + project("P", "n", traces)))[0]?.traces).toBe(Number(traces));
  });

  it("may have a row without a bucket, but not with half a bucket", async () => {
    expect(await read(`${HEADER},,,,P,n,,,,1\n`)).toMatchObject([{ bucketStart: null, bucketEnd: null }]);
    for (const [start, end, column] of [
      ["2026-01-05T00:00:00Z", "", "Time Bucket End"],
      ["", "2026-01-05T00:00:00Z", "Time Bucket Start"],
      ["2026", "2026-01-05T00:00:00Z", "Time Bucket Start"],
    ])
      expect((await refusal(`${HEADER}${start},${end},,,P,n,,,,1\n`)).location).toBe(`line 2.${column}`);
  });

  it.each(["Time Bucket Start", "Time Bucket End", "Project ID", "Project Name", "Traces"])(
    "is refused without the column %s, and the error names the columns",
    async (column) => {
      const found = await refusal(`${COLUMNS.replace(column, "Nodes Executed")}\n${project("P", "n", 1)}\n`);
      expect(found).toMatchObject({ code: "response_invalid", location: undefined });
      expect(found.message).toContain(`no column "${column}"`);
      expect(found.message).toContain('"Nodes Executed"');
    },
  );

  it("is refused with a repeated column, a row of another length, or as a web page", async () => {
    expect((await refusal(`${COLUMNS},Traces\n`)).message).toContain('"Traces" twice');
    expect(await refusal('<!DOCTYPE html>\n<html lang="en">\n</html>\n')).toMatchObject({
      code: "response_invalid",
    });
    for (const row of [`${DAY},,,P`, `${project("P", "n", 1)},`]) {
      for (const more of ["", `${project("P", "n", 1)}\n`])
        expect(await refusal(`${HEADER}${row}\n${more}`)).toMatchObject({
          code: "response_invalid",
          location: "line 2",
        });
    }
    const quote = await refusal(`${HEADER}${project("P", 'secret" x', 1)}\n`);
    expect(quote).toMatchObject({ code: "response_invalid", location: "line 2" });
    expect(quote.message).not.toContain("secret");
  });

  it("is refused if no row has the requested dimension and some have another", async () => {
    const other = `${DAY},W1,Work,,,,,,3\n`;
    expect(await refusal(HEADER + other + other)).toMatchObject({
      code: "response_invalid",
      message: expect.stringContaining('"Workspace ID"'),
    });
    expect(await read(`${HEADER}${other}${project("P", "n", 1)}`)).toHaveLength(2);
    expect(await read(`${HEADER}${project("", "", 1)}\n`)).toHaveLength(1);
  });

  it("may have no rows but needs a header", async () => {
    expect(await read(HEADER)).toEqual([]);
    expect(await read(COLUMNS)).toEqual([]);
    expect(await read(HEADER, { proved: false })).toEqual([]);
    for (const body of ["", "\n", "\r\n\r\n"])
      expect(await refusal(body)).toMatchObject({ code: "response_cut" });
  });

  it("is refused as cut with half a row at the end", async () => {
    const whole = `${HEADER}${project("P1", "a", 1)}\n`;
    expect(await refusal(`${whole}${DAY},,,P2`)).toMatchObject({ code: "response_cut" });
    expect(await refusal(`${whole}${DAY},,,"P2`)).toMatchObject({ code: "response_cut" });
    expect(await refusal(`${whole}${DAY},,,"P2\n`)).toMatchObject({ code: "response_cut" });
  });

  it("yields only whole rows of any beginning of an unproved body, or is refused as cut", async () => {
    const cell = fc.constantFrom("a", '"q""u"', '"l\r\nm"', "", "é漢", "\t=x");
    const row = fc.tuple(cell, cell, fc.nat(99_999)).map(([id, name, traces]) => project(id, name, traces));
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { minLength: 1, maxLength: 3 }),
        fc.constantFrom("\n", "\r\n"),
        async (rows, eol) => {
          const body = Buffer.from([COLUMNS, ...rows, ""].join(eol));
          const all = await read([body]);
          for (let end = 0; end < body.length; end += 1) {
            let found: ExportRow[];
            try {
              found = await read([body.subarray(0, end)], { proved: false });
            } catch (error) {
              expect(error).toMatchObject({ code: "response_cut" });
              continue;
            }
            expect(found).toEqual(all.slice(0, found.length));
            expect(
              body.toString("latin1", 0, end).split(eol).length,
              "no line that ended is left out",
            ).toBeGreaterThan(found.length);
          }
        },
      ),
      { numRuns: 15 },
    );
  });
});

const seed = 20_260_105;
async function readBy(
  Cutter: typeof PlainCsv | typeof CarefulCsv,
  body: string | Buffer,
  { pieceBytes = 65_536, proved = true } = {},
): Promise<ExportRow[] | "refused"> {
  const bytes = Buffer.from(body);
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, nth) =>
    bytes.subarray(nth * pieceBytes, (nth + 1) * pieceBytes),
  );
  return read(pieces, { proved, Cutter }).catch((error: unknown) => {
    expect(error instanceof NotPlain || error instanceof ResponseError, String(error)).toBe(true);
    return "refused";
  });
}

describe("An export read by the fast cutter", () => {
  it("is left to csv-parse if a row has 400,000 characters, which is within csv-parse's bound", async () => {
    const body = `${COLUMNS}\n${project("P", "x".repeat(400_000), "1")}\n`;
    expect((await readBy(PlainCsv, body)) === "refused").toBe(true);
    expect((await readBy(CarefulCsv, body)).length).toBe(1);
  });

  it(`agrees with csv-parse on random bodies (seed ${seed})`, async () => {
    const cell = fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom("P1", "n", "", "é漢", "\t=x", "\t\tq", "=1") },
      {
        weight: 4,
        arbitrary: fc.constantFrom('"a"', '"q""u"', '"l\r\nm"', '"x,y"', '""', '"\n"', '"""', '"a" '),
      },
      { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...'ab",\r\n\t\\.\0 é'), maxLength: 5 }) },
    );
    const traces = fc.constantFrom("0", "7", "12", "9007199254740991", '"5"', "x", "-1", "", " 1");
    const row = fc
      .tuple(cell, cell, fc.oneof({ weight: 20, arbitrary: fc.constantFrom("1", "2") }, traces))
      .map(([id, name, count]) => project(id, name, count));
    const line = fc.oneof({ weight: 30, arbitrary: row }, fc.constantFrom("", '""', "\\.", "a,b", "x"));
    const eol = fc.oneof({ weight: 30, arbitrary: fc.constantFrom("\n", "\r\n") }, fc.constant("\r"));
    const plain: [number, number] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(line, eol), { maxLength: 6 }),
        fc.constantFrom("", "\u{FEFF}"),
        fc.nat({ max: 4 }),
        fc.constantFrom(1, 5, 65_536),
        fc.boolean(),
        async (lines, mark, cut, pieceBytes, proved) => {
          const whole = Buffer.from(`${mark}${COLUMNS}\n${lines.map(([text, end]) => text + end).join("")}`);
          const body = whole.subarray(0, whole.length - Math.min(cut, 3));
          const fast = await readBy(PlainCsv, body, { pieceBytes, proved });
          if (fast === "refused") return;
          plain[mark === "" ? 0 : 1]++;
          expect(await readBy(CarefulCsv, body, { proved })).toEqual(fast);
        },
      ),
      { seed, numRuns: 1_500 },
    );
    for (const read of plain) expect(read).toBeGreaterThan(120);
  });
});

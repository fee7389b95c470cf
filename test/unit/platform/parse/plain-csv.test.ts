import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ExportRow } from "../../../../src/domain/usage/export.ts";
import { AnswerFault } from "../../../../src/platform/parse/answer-fault.ts";
import { CarefulCsv, NotPlain, PlainCsv } from "../../../../src/platform/parse/csv-cells.ts";
import { ExportReader } from "../../../../src/platform/parse/export-reader.ts";

/** The fast cutter gives the same rows and lines as csv-parse, or refuses the body. */

const seed = 20_260_105;
const COLUMNS =
  "Time Bucket Start,Time Bucket End,Workspace ID,Workspace Name,Project ID,Project Name,User ID,User Email,API Key Short Key,Traces";
const DAY = "2026-01-05T00:00:00Z,2026-01-06T00:00:00Z";

interface How {
  readonly pieceBytes?: number;
  readonly proved?: boolean;
}

async function read(
  Cutter: typeof PlainCsv | typeof CarefulCsv,
  body: string | Buffer,
  { pieceBytes = 65_536, proved = true }: How = {},
): Promise<ExportRow[] | "refused"> {
  const rows: ExportRow[] = [];
  const reader = new ExportReader(Cutter, { meter: "traces", groupBy: "project" }, (batch) =>
    rows.push(...batch),
  );
  const bytes = Buffer.from(body);
  try {
    for (let at = 0; at < bytes.length; at += pieceBytes)
      await reader.push(bytes.subarray(at, at + pieceBytes));
    await reader.end(proved);
    return rows;
  } catch (error) {
    expect(error instanceof NotPlain || error instanceof AnswerFault, String(error)).toBe(true);
    return "refused";
  }
}

const project = (id: string, name: string, traces: string) => `${DAY},,,${id},${name},,,,${traces}`;

describe("An export read by the fast cutter", () => {
  it.each([
    ["LF", `${COLUMNS}\n${project("P", "n", "1")}\n`],
    ["CRLF, and a byte order mark", `\u{FEFF}${COLUMNS}\r\n${project("P", "n", "1")}\r\n`],
    ["both", `${COLUMNS}\r\n${project("P", "n", "1")}\n${project("Q", "n", "2")}\r\n`],
    ["no line end behind the last row", `${COLUMNS}\n${project("P", "n", "1")}`],
    ["empty lines", `${COLUMNS}\n\n${project("P", "n", "1")}\n\r\n""\n${project("Q", "n", "2")}\n\n`],
    [
      "quotes, commas and line ends in cells",
      `${COLUMNS}\n${project('"P,""1"""', '"a\r\nb\nc"', '"7"')}\n${project("Q", '""', "2")}`,
    ],
    ["quotes in the last cell", `${COLUMNS}\n${DAY},,,P,n,,,,"3"\r\n${DAY},,,P,n,,,,"4"`],
    ["a carriage return within a cell", `${COLUMNS}\n${project("P", "a\rb", "1")}\n`],
    [
      "guards, empty ids and names of other scripts",
      `${COLUMNS}\n${project("\t=1", "漢🚀", "1")}\n${project("", "", "2")}\n`,
    ],
    ["a quoted header", `"${COLUMNS.replaceAll(",", '","')}"\n${project("P", "n", "1")}\n`],
  ])("has the same rows as with csv-parse: %s", async (_, body) => {
    const careful = await read(CarefulCsv, body);
    expect(careful).not.toBe("refused");
    for (const pieceBytes of [1, 2, 3, 7, 65_536]) {
      expect(await read(PlainCsv, body, { pieceBytes })).toEqual(careful);
    }
  });

  it.each([
    ["a quote within a cell", `${COLUMNS}\n${project("P", 'a"b"', "1")}\n`],
    ["something behind a closing quote", `${COLUMNS}\n${project("P", '"a" ', "1")}\n`],
    ["a carriage return alone behind a quote", `${COLUMNS}\n${DAY},,,P,n,,,,"1"\r`],
    ["a carriage return at the end", `${COLUMNS}\n${project("P", "n", "1")}\r`],
    ["half a row", `${COLUMNS}\n${DAY},,,P`],
    ["an unclosed quote", `${COLUMNS}\n${project("P", '"n', "1")}\n`],
    ["a row too long", `${COLUMNS}\n${project("P", "n", "1")},\n`],
    ["half a header", "Time Bucket Start,Time"],
    ["nothing", ""],
    ["other traces than digits", `${COLUMNS}\n${project("P", "n", "01")}\n`],
    ["another dimension", `${COLUMNS}\n${DAY},W,Work,,,,,,,3\n`],
  ])("is left to csv-parse: %s", async (_, body) => {
    for (const pieceBytes of [1, 65_536]) {
      expect(await read(PlainCsv, body, { pieceBytes })).toBe("refused");
    }
  });

  it("is left to csv-parse if a row has 400,000 characters, which is within csv-parse's bound", async () => {
    const body = `${COLUMNS}\n${project("P", "x".repeat(400_000), "1")}\n`;
    // Compares less than the rows, for a short message.
    expect((await read(PlainCsv, body)) === "refused").toBe(true);
    expect((await read(CarefulCsv, body)).length).toBe(1);
  });

  it("is left to csv-parse if its last row may have lost digits", async () => {
    const body = `${COLUMNS}\n${project("P", "n", "12")}`;
    expect(await read(PlainCsv, body, { proved: false })).toBe("refused");
    expect(await read(PlainCsv, `${body}\n`, { proved: false })).toHaveLength(1);
  });

  it(`agrees with csv-parse on random bodies (seed ${seed})`, async () => {
    const cell = fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom("P1", "n", "", "é漢", "\t=x", "\t\tq", "=1") },
      {
        weight: 4,
        arbitrary: fc.constantFrom('"a"', '"q""u"', '"l\r\nm"', '"x,y"', '""', '"\n"', '"""'),
      },
      { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...'ab",\r\n\t\\.\0 é'), maxLength: 5 }) },
    );
    const traces = fc.constantFrom("0", "7", "12", "9007199254740991", '"5"', "x", "-1", "", " 1");
    const row = fc
      .tuple(cell, cell, fc.oneof({ weight: 20, arbitrary: fc.constantFrom("1", "2") }, traces))
      .map(([id, name, count]) => project(id, name, count));
    const line = fc.oneof({ weight: 30, arbitrary: row }, fc.constantFrom("", '""', "\\.", "a,b", "x"));
    const eol = fc.oneof({ weight: 30, arbitrary: fc.constantFrom("\n", "\r\n") }, fc.constant("\r"));
    let plain = 0;
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
          const fast = await read(PlainCsv, body, { pieceBytes, proved });
          if (fast === "refused") return;
          plain++;
          expect(await read(CarefulCsv, body, { proved })).toEqual(fast);
        },
      ),
      { seed, numRuns: 1_500 },
    );
    expect(plain).toBeGreaterThan(300);
  });
});

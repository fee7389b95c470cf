import { refuseGiven } from "../../core/base/given-file.ts";
import { loadOptional } from "../../core/base/optional.ts";
import { csvCell } from "../export/table-file.ts";
import { isEither } from "./written-number.ts";

/** Bytes of all parts of a workbook. A small file can unpack to any size. */
const LARGEST_WORKBOOK = 100 * 1024 * 1024;
/** A workbook keeps 15 digits of a number. */
const DIGITS = 15;
/** A cell with a formula, or with an error, which the library reads as an empty cell. */
const COMPUTED = /<c\b[^>]*?\br="([A-Z]+\d+)"[^>]*?(?:\bt="e"[^>]*>|>\s*<f[\s>/])/g;

/** The only sheet of a workbook as CSV, a line for each row. Error: `file_invalid`, also for formulas. */
export async function xlsxAsCsv(file: string, bytes: Uint8Array): Promise<string> {
  const [{ default: readWorkbook }, { strFromU8, unzipSync }] = await loadOptional(() =>
    Promise.all([import("read-excel-file/node"), import("fflate")]),
  );
  try {
    let size = 0;
    const sheets = unzipSync(bytes, {
      filter: ({ name, originalSize }) => {
        size += originalSize;
        if (size > LARGEST_WORKBOOK)
          refuseGiven(file, ["it unpacks to more than 100 MB, which no invoice has"]);
        return /^xl\/worksheets\/[^/]+\.xml$/.test(name);
      },
    });
    const computed = Object.values(sheets).flatMap((xml) =>
      [...strFromU8(xml).matchAll(COMPUTED)].map(([, cell]) => cell),
    );
    refuseGiven(
      file,
      computed.map(
        (cell) => `cell ${cell} has a formula or an error, and its value may be old. Paste the values`,
      ),
    );
    const problems: string[] = [];
    const workbook = await readWorkbook(Buffer.from(bytes), {
      parseNumber: (text) => numberText(text, problems),
    });
    const used = workbook.filter(({ data }) => data.some((row) => row.some((cell) => cell !== null)));
    if (used.length !== 1)
      problems.push(`it has ${used.length} sheets with cells. Keep the one of the invoice`);
    refuseGiven(file, problems);
    return (used[0]?.data ?? []).map((row) => `${row.map(cellText).join(",")}\n`).join("");
  } catch (error) {
    if ((error as { code?: unknown }).code === "file_invalid") throw error;
    refuseGiven(file, [`it is not a whole workbook: ${(error as Error).message}`]);
    throw error;
  }
}

function numberText(text: string, problems: string[]): string {
  const value = Number(text);
  if (Math.abs(value) >= 10 ** DIGITS)
    problems.push(`${text} has more digits than a workbook keeps. Write it as text`);
  const shortest = String(Number(value.toPrecision(DIGITS)));
  // Its point is sure, unlike that of a text.
  return isEither(shortest) ? `${shortest}0` : shortest;
}

function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  const text = cell instanceof Date ? cell.toISOString().replace("T00:00:00.000Z", "") : String(cell);
  return csvCell(text.replaceAll(/[\r\n]+/g, " "));
}

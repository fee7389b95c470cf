import { refuseGiven } from "../../core/base/given-file.ts";
import { loadOptional } from "../../core/base/optional.ts";
import type { TextCell, TextRow } from "./text-row.ts";

const MOST_PAGES = 500;

/** A piece of text with its place on the page; a font's size is its height. */
interface Piece extends TextCell {
  readonly y: number;
  readonly size: number;
  readonly isTurned: boolean;
}

/** Rows of all pages, rebuilt from the places of their texts. Error: `file_invalid` for a locked, broken or scanned file. */
export async function pdfRows(file: string, bytes: Uint8Array): Promise<TextRow[]> {
  const refuse = (why: string) => refuseGiven(file, [why]);
  const { getDocument, VerbosityLevel } = await loadOptional(() => import("pdfjs-dist/legacy/build/pdf.mjs"));
  // It takes the bytes away, so it gets its own. Damage that it could read past is an error.
  const loading = getDocument({
    data: Uint8Array.from(bytes),
    verbosity: VerbosityLevel.ERRORS,
    stopAtErrors: true,
    disableFontFace: true,
    useSystemFonts: false,
  });
  try {
    const document = await loading.promise;
    if (document.numPages > MOST_PAGES)
      refuse(`it has ${document.numPages} pages, and at most ${MOST_PAGES} are read`);
    const rows: TextRow[] = [];
    for (let number = 1; number <= document.numPages; number += 1) {
      const page = await document.getPage(number);
      const { items } = await page.getTextContent();
      const pieces = items.flatMap((item) =>
        "str" in item && item.str.trim() !== "" ? [pieceOf(item)] : [],
      );
      if (pieces.length === 0)
        refuse(`page ${number}: it has no text. A scan cannot be read: type it, or ask for a PDF with text`);
      rows.push(...rowsOf(pieces, number));
      page.cleanup();
    }
    return rows;
  } catch (error) {
    const { name, message } = error as Error;
    if (name === "PasswordException") refuse("it is locked with a password. Save it without one");
    if (name === "InvalidPDFException" || name === "FormatError") refuse(`it is not a whole PDF: ${message}`);
    throw error;
  } finally {
    await loading.destroy();
  }
}

function pieceOf({ str, width, transform }: { str: string; width: number; transform: number[] }): Piece {
  const [a = 0, b = 0, , , x = 0, y = 0] = transform;
  const lead = /^\s*/.exec(str)?.[0].length ?? 0;
  const text = str.trim();
  // Blanks at the ends are part of the width.
  const each = width / Math.max(1, str.length);
  const from = x + lead * each;
  const to = x + width - (str.length - lead - text.length) * each;
  return { text, from, to, y, size: Math.hypot(a, b), isTurned: Math.abs(b) > Math.abs(a) / 10 };
}

/** Pieces whose baselines are closer than this part of their size are in one row. */
const SAME_ROW = 0.4;
/** A gap wider than a size separates cells; a narrower one is a blank, or nothing. */
const NEW_CELL = 0.9;
const BLANK = 0.12;
/** Lines of one text are closer than rows of a table. */
const CONTINUES = 1.4;

function rowsOf(pieces: readonly Piece[], page: number): TextRow[] {
  const rows: Piece[][] = [];
  for (const piece of [...pieces].sort((one, other) => other.y - one.y)) {
    const row = rows.at(-1);
    const [first] = row ?? [];
    const isNear =
      first !== undefined &&
      !first.isTurned &&
      !piece.isTurned &&
      first.y - piece.y < SAME_ROW * Math.min(first.size, piece.size);
    if (isNear) row?.push(piece);
    else rows.push([piece]);
  }
  return rows.map((row, n) => {
    const cells = cellsOf([...row].sort((one, other) => one.from - other.from));
    const [first, above] = [row[0] as Piece, rows[n - 1]?.[0]];
    const isContinuation =
      above !== undefined && cells.length === 1 && above.y - first.y < CONTINUES * first.size;
    return { place: `page ${page}, row ${n + 1}`, cells, isContinuation };
  });
}

function cellsOf(pieces: readonly Piece[]): TextCell[] {
  const cells: TextCell[] = [];
  for (const { text, from, to, size } of pieces) {
    const last = cells.at(-1);
    const gap = from - (last?.to ?? 0);
    if (last === undefined || gap > NEW_CELL * size) cells.push({ text, from, to });
    else
      cells[cells.length - 1] = { ...last, text: `${last.text}${gap > BLANK * size ? " " : ""}${text}`, to };
  }
  return cells;
}

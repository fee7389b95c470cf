import { readFile } from "node:fs/promises";
import { UsageError } from "./errors.ts";

/** A file from a user is accepted whole or not at all. */

/** Limit of problems shown: a file whose columns are shifted has one on each line. */
const PROBLEMS_SHOWN = 10;

export interface Problem {
  readonly path: readonly (string | number)[];
  readonly why: string;
  /** True if the last key itself is wrong, not its value. */
  readonly isKey?: boolean;
}

/** `form` is the expected format, such as `a CSV file in UTF-8`. Error: `file_unreadable`. */
export async function readGiven(file: string, form: string): Promise<string> {
  const refuse = (why: string, cause?: unknown) =>
    new UsageError({
      code: "file_unreadable",
      message: `${file} cannot be read: ${why}.`,
      next: `Give ${form}.`,
      cause,
    });
  const bytes = await readFile(file).catch((cause) => {
    throw refuse((cause as Error).message, cause);
  });
  const text = textOf(bytes);
  if (text === undefined) throw refuse(NO_TEXT);
  return text;
}

export const NO_TEXT = "it is not text in UTF-8, or in UTF-16 with a byte order mark";

/** Removes a byte order mark, which would become a part of the first line. Undefined: see `NO_TEXT`. */
export function textOf(bytes: Uint8Array): string | undefined {
  const mark = bytes.length > 1 ? (bytes[0] as number) * 256 + (bytes[1] as number) : 0;
  const encoding = mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    // UTF-16 without a mark passes for UTF-8 with a NUL in each character.
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

export function refuseGiven(file: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const hidden = problems.length - PROBLEMS_SHOWN;
  const shown = [...problems.slice(0, PROBLEMS_SHOWN), ...(hidden > 0 ? [`and ${hidden} more`] : [])];
  throw new UsageError({
    code: "file_invalid",
    message: `${file} was refused:\n  ${shown.join("\n  ")}`,
    next: "Nothing was changed. Correct the file and try again.",
  });
}

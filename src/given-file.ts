import { readFile } from "node:fs/promises";
import { UsageError } from "./errors.ts";

/** A file is taken whole or not at all. */

/** A file whose columns are shifted has a problem on each line. */
const PROBLEMS_SHOWN = 10;

/** A problem in YAML, with the keys and places that lead to it. */
export interface Problem {
  readonly path: readonly (string | number)[];
  readonly why: string;
  /** The last key itself is wrong, not its value. */
  readonly isKey?: boolean;
}

/** `form` is the expected format, such as `a CSV file in UTF-8`. Error: `file_unreadable`. */
export async function readGiven(file: string, form: string): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await readFile(file));
  } catch (cause) {
    throw new UsageError({
      code: "file_unreadable",
      message: `${file} cannot be read: ${cause instanceof TypeError ? "it is not UTF-8" : (cause as Error).message}.`,
      next: `Give ${form}.`,
      cause,
    });
  }
}

/** Error: `file_invalid` with the first ten problems. */
export function refuseGiven(file: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const hidden = problems.length - PROBLEMS_SHOWN;
  const shown = [...problems.slice(0, PROBLEMS_SHOWN), ...(hidden > 0 ? [`and ${hidden} more`] : [])];
  throw new UsageError({
    code: "file_invalid",
    message: `${file} was refused:\n  ${shown.join("\n  ")}`,
    next: "Correct the file and give it again. Nothing was changed.",
  });
}

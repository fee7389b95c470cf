import { recordFault } from "./answer-fault.ts";
import { ValueScanner } from "./json-scan.ts";

const OPEN_BRACE = 0x7b;

/**
 * The records of a run: whole objects with commas between. `first` is the index of the first of them in `usage`. Throws
 * `AnswerFault` that names the record that is not JSON.
 */
export function parseRun(run: Buffer, first: number): unknown[] {
  try {
    return JSON.parse(`[${run.toString("utf8")}]`);
  } catch {
    const index = first + brokenRecord(run);
    throw recordFault(`record ${index} (usage[${index}]) is not JSON`, `usage.${index}`);
  }
}

/** The index of the record in the run that is not JSON. */
function brokenRecord(run: Buffer): number {
  const scanner = new ValueScanner();
  let index = 0;
  for (let at = 0; at !== -1; index += 1) {
    const end = scanner.scan(run, at);
    try {
      JSON.parse(run.toString("utf8", at, end));
    } catch {
      return index;
    }
    at = run.indexOf(OPEN_BRACE, end);
  }
  return index;
}

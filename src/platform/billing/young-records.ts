import { setFlagsFromString } from "node:v8";

let isSet = false;

/**
 * Call it before a large answer is read. Else V8 may learn from its first records that records live long, and place all others among
 * the old objects, where hundreds of megabytes of them wait for a full collection (docs/benchmarks.md, "Memory of a large export").
 *
 * Not at the start of the program: what was compiled in advance is void under another setting, and a start took 20 % more CPU time.
 * A V8 that does not know the setting says so on stderr and goes on.
 */
export function keepRecordsYoung(): void {
  if (isSet) return;
  isSet = true;
  setFlagsFromString("--no-allocation-site-pretenuring");
}

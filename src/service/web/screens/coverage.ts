import type { Web } from "../routes.ts";

/** Coverage of months, days and hours, and the next gap. */
export function addCoverage(_web: Web): void {}

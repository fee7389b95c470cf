import type { Web } from "../routes.ts";

/** Where the export, totals or restatements differ from what is stored. */
export function addDifferences(_web: Web): void {}

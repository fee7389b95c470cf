import type { Web } from "../routes.ts";

/** Months: what keeps them open, closing one, and what changed since. */
export function addMonths(_web: Web): void {}

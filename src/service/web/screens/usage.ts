import type { Web } from "../routes.ts";

/** Usage and costs of a range, by one dimension. */
export function addUsage(_web: Web): void {}

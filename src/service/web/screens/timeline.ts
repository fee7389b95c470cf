import type { Web } from "../routes.ts";

/** What happened, and who did what. */
export function addTimeline(_web: Web): void {}

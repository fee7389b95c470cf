import type { Web } from "../routes.ts";

/** Backfills: the list, a new one, and how one goes on. */
export function addBackfills(_web: Web): void {}

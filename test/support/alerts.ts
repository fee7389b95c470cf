import type { Secret } from "../../src/config/secret.ts";
import { HOUR_MS } from "../../src/domain/time/stride.ts";
import type { AlertSettings } from "../../src/pipeline/alerts/tell.ts";

/** Alerts of the only source, which is stale after an hour. Nothing waits between tries. */
export function alertSettings(secrets: ReadonlyMap<string, Secret>): AlertSettings {
  return {
    slug: "default",
    firstSource: "default",
    secrets,
    staleAfterMs: HOUR_MS,
    clock: { wait: async () => {} },
  };
}

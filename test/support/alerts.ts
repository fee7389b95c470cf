import { onTestFinished } from "vitest";
import { Secret } from "../../src/core/base/secret.ts";
import { HOUR_MS } from "../../src/core/domain/time/stride.ts";
import type { AlertSettings } from "../../src/features/alerts/send-alerts.ts";
import { openReceivers } from "./receivers.ts";

export function alertSettings(secrets: ReadonlyMap<string, Secret>): AlertSettings {
  return {
    slug: "default",
    firstSource: "default",
    secrets,
    staleAfterMs: HOUR_MS,
    clock: { wait: async () => {} },
  };
}

/** The bodies that the webhook of all alerts gets until the test ends. */
export async function startWebhook() {
  const heard: { text: string; alerts: Record<string, unknown>[] }[] = [];
  const receivers = await openReceivers(({ body }) => {
    heard.push(JSON.parse(body));
    return "well";
  });
  onTestFinished(receivers.close);
  const secrets = new Map([["USAGE_ALERT_WEBHOOK_URL", new Secret(`${receivers.webUrl}/webhook`)]]);
  return { heard, secrets };
}

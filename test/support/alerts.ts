import { createServer } from "node:http";
import { Secret } from "../../src/config/secret.ts";
import { HOUR_MS } from "../../src/domain/time/stride.ts";
import type { AlertSettings } from "../../src/pipeline/alerts/send-alerts.ts";
import { listenInTest } from "./listen.ts";

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

/** The webhook of alerts at an address. */
export const webhookAt = (url: string) => new Map([["USAGE_ALERT_WEBHOOK_URL", new Secret(url)]]);

/** A webhook that answers with `status` until the test ends, and what it took. */
export async function startWebhook() {
  const heard: { text: string; alerts: Record<string, unknown>[] }[] = [];
  const webhook = { heard, status: 200 };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (webhook.status < 300) heard.push(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    response.writeHead(webhook.status).end();
  });
  return Object.assign(webhook, {
    secrets: webhookAt(`http://127.0.0.1:${await listenInTest(server)}/hooks/sesame`),
  });
}

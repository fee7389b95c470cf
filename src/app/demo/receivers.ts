import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Secret } from "../../core/base/secret.ts";

interface DemoReceivers {
  readonly settings: Readonly<Record<string, string>>;
  readonly secrets: ReadonlyMap<string, Secret>;
  close(): Promise<void>;
}

const LONGEST = 160;

export async function openDemoReceivers(say: (line: string) => void): Promise<DemoReceivers> {
  const server = createServer(async (request, response) => {
    const receiver = request.url?.replace("/", "") ?? "";
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const line = gistOf(body);
    say(`${receiver} got: ${line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line}`);
    response.writeHead(receiver === "pagerduty" ? 202 : 200);
    response.end(receiver === "pagerduty" ? '{"status":"success"}' : "ok");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const settings = {
    USAGE_ROUTE_WEBHOOK: `http://${host}/webhook`,
    USAGE_ROUTE_SLACK: `http://${host}/slack`,
    USAGE_ROUTE_PAGERDUTY: `http://demo-integration-key@${host}/pagerduty`,
  };
  return {
    settings,
    secrets: new Map(Object.entries(settings).map(([name, value]) => [name, new Secret(value)])),
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

function gistOf(body: string): string {
  try {
    const { text = "", payload, event_action: action, dedup_key: key } = JSON.parse(body);
    const message: string = payload?.summary ?? (text || `${action} ${key}`);
    return message.split("\n")[0] ?? "";
  } catch {
    return body.replaceAll(/\s+/g, " ");
  }
}

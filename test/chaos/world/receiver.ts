import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { drip, flood } from "../../support/agent-server.ts";
import { listenInTest } from "../../support/listen.ts";

export const MANNERS = ["well", "drips", "holds", "refuses", "redirects", "never ends"] as const;

export interface Receiver {
  readonly url: string;
  manner: (typeof MANNERS)[number];
  /** Messages so far, whatever became of them. */
  readonly messages: number;
}

/** A receiver of webhooks that may hold whoever sends to it. */
export async function openReceiver(): Promise<Receiver> {
  let messages = 0;
  const server = createServer(async (request, response) => {
    await text(request).catch(() => "");
    messages++;
    respond(response, receiver.manner);
  });
  const receiver: Receiver = {
    url: `http://127.0.0.1:${await listenInTest(server)}/hook`,
    manner: "well",
    get messages() {
      return messages;
    },
  };
  return receiver;
}

function respond(response: ServerResponse, manner: Receiver["manner"]): void {
  if (manner === "holds") return;
  if (manner === "well") return void response.end("ok");
  if (manner === "refuses") return void response.writeHead(503).end('{"ok":true}');
  if (manner === "redirects") return void response.writeHead(307, { location: "/hook" }).end();
  if (manner === "drips") return void drip(response, { type: "text/plain", everyMs: 500 });
  flood(response, { type: "text/plain" });
}

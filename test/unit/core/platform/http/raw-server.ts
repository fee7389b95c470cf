import { createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import {
  type BillingClient,
  createBillingClient,
  type UsageQuery,
} from "../../../../../src/core/platform/billing/billing.ts";
import { PlatformHttp, type PlatformHttpOptions } from "../../../../../src/core/platform/http/http.ts";
import { listenInTest } from "../../../../support/listen.ts";

export const KEY = "lsv2_sk_9F8e7D6c5B4a";

export const QUERY: UsageQuery = {
  meter: "traces",
  start: Date.UTC(2026, 0, 5),
  end: Date.UTC(2026, 0, 7),
  groupBy: "project",
  workspaceIds: ["0b2e6b5c-8a7e-4a5e-9c3a-3f6f3c0c1d2e"],
};

/** The bytes of one response: whatever a server may put on the wire, right or wrong. `reset`: RST instead of FIN. */
interface RawResponse {
  readonly bytes: string | Buffer;
  readonly closing: "keep" | "end" | "reset";
  readonly more?: string | Buffer;
}

interface RawServer {
  readonly url: string;
  readonly requests: string[];
  readonly connections: () => number;
}

export async function rawServer(
  response: (head: string, index: number) => RawResponse | undefined,
): Promise<RawServer> {
  const requests: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.setNoDelay(true);
    socket.on("error", () => {});
    let pending = "";
    socket.on("data", (data) => {
      pending += data.toString("latin1");
      for (let end = pending.indexOf("\r\n\r\n"); end !== -1; end = pending.indexOf("\r\n\r\n")) {
        const head = pending.slice(0, end);
        pending = pending.slice(end + 4);
        requests.push(head);
        const raw = response(head, requests.length - 1);
        if (raw !== undefined) send(socket, raw);
      }
    });
  });
  const url = `http://127.0.0.1:${await listenInTest(server)}`;
  return { url, requests, connections: () => connections };
}

function send(socket: Socket, raw: RawResponse): void {
  const finish = () => {
    if (raw.closing === "end") socket.end();
    if (raw.closing === "reset") socket.resetAndDestroy();
  };
  socket.write(raw.bytes, () => {
    if (raw.more === undefined) finish();
    else setImmediate(() => socket.write(raw.more ?? "", finish));
  });
}

export function clientOf(url: string, options: Partial<PlatformHttpOptions> = {}): BillingClient {
  const client = createBillingClient(new PlatformHttp({ baseUrl: url, apiKey: KEY, ...options }));
  onTestFinished(() => client.close());
  return client;
}

type Framed = "length" | "chunked" | "close";

export function framed(body: string | Buffer, framing: Framed, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body);
  const line =
    framing === "length"
      ? `content-length: ${bytes.length}`
      : framing === "chunked"
        ? "transfer-encoding: chunked"
        : "connection: close";
  const head = Buffer.from(`HTTP/1.1 200 OK\r\n${[line, ...headers].join("\r\n")}\r\n\r\n`);
  if (framing !== "chunked") return Buffer.concat([head, bytes]);
  const half = Math.ceil(bytes.length / 2);
  const chunks = [bytes.subarray(0, half), bytes.subarray(half)].filter((chunk) => chunk.length > 0);
  const coded = chunks.flatMap((chunk) => [
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([head, ...coded, Buffer.from("0\r\n\r\n")]);
}

export function status(line: string, body: string, headers: readonly string[] = []): RawResponse {
  const head = [`HTTP/1.1 ${line}`, `content-length: ${Buffer.byteLength(body)}`, ...headers].join("\r\n");
  return { bytes: `${head}\r\n\r\n${body}`, closing: "keep" };
}

export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`expected a rejection, got ${JSON.stringify(value)}`);
}

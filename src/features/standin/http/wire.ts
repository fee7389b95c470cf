import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { pipeline, Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { createGzip, gzipSync } from "node:zlib";
import type { FastifyReply } from "fastify";
import type { Fault } from "../engine/faults.ts";
import type { Settings } from "../engine/settings.ts";

export interface Response {
  readonly status: number;
  readonly type: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A text has a length. Pieces are streamed. */
  readonly body: string | Iterable<string> | AsyncIterable<string>;
}

type Framing = Settings["framing"];

/** Server-Sent Events, as they happen. */
export function eventStream(
  events: Iterable<readonly [name: string, data: unknown]> | AsyncIterable<readonly [string, unknown]>,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const lines = async function* () {
    for await (const [name, data] of events) yield `event: ${name}\r\ndata: ${JSON.stringify(data)}\r\n\r\n`;
  };
  const type = "text/event-stream; charset=utf-8";
  return { status: 200, type, headers: { "cache-control": "no-store", ...headers }, body: lines() };
}

export async function send(
  reply: FastifyReply,
  response: Response,
  { gzip, framing, fault }: { gzip: boolean; framing: Framing; fault: Fault | null },
): Promise<FastifyReply> {
  if (fault?.kind === "cut" || fault?.kind === "slow") return byHand(reply, response, gzip, fault);
  return whole(reply, response, gzip, fault?.kind === "whole" ? fault.framing : framing);
}

export function reset(reply: FastifyReply): FastifyReply {
  reply.hijack();
  reply.raw.socket?.resetAndDestroy();
  return reply;
}

/** Does not respond until the client or the closing server drops the connection. */
export function hang(reply: FastifyReply): FastifyReply {
  return reply.hijack();
}

function whole(reply: FastifyReply, response: Response, gzip: boolean, framing: Framing): FastifyReply {
  reply.code(response.status).headers(headersOf(response, gzip));
  if (typeof response.body === "string" && framing === "length") {
    return reply.send(gzip ? gzipSync(response.body) : response.body);
  }
  // Only the closed connection ends the body (RFC 9112, 6.3).
  if (framing === "close") reply.raw.useChunkedEncodingByDefault = false;
  const pieces = Readable.from(typeof response.body === "string" ? [response.body] : response.body);
  // Fastify reports a failed stream, and `pipeline` ends the other one.
  return reply.send(gzip ? pipeline(pieces, createGzip(), () => {}) : pieces);
}

/** Writes to the socket, because Node's server would repair a cut body. */
async function byHand(
  reply: FastifyReply,
  response: Response,
  accepted: boolean,
  fault: Extract<Fault, { kind: "cut" | "slow" }>,
): Promise<FastifyReply> {
  const gzip = accepted || (fault.kind === "cut" && fault.framing === "gzip");
  const text = Buffer.from(
    typeof response.body === "string"
      ? response.body
      : (await Readable.from(response.body).toArray()).join(""),
  );
  const bytes = gzip ? gzipSync(text) : text;
  reply.hijack();
  const { socket } = reply.raw;
  if (socket === null) return reply;
  const head = (framing: Record<string, string>) => {
    const headers = Object.entries({ ...headersOf(response, gzip), ...framing });
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ""}\r\n${lines.join("")}\r\n`,
    );
  };
  if (fault.kind === "slow") {
    head({ "content-length": String(bytes.length), connection: "close" });
    await drip(socket, bytes, fault.ms);
  } else {
    cut(socket, bytes, fault, head);
  }
  socket.end(() => socket.destroy());
  return reply;
}

function cut(
  socket: Socket,
  bytes: Buffer,
  { framing, at = "half" }: Extract<Fault, { kind: "cut" }>,
  head: (framing: Record<string, string>) => void,
): void {
  const sent = bytes.subarray(0, cutAt(bytes, at));
  switch (framing) {
    case "length":
      // With `all`, every byte is sent, so the length is one larger.
      head({ "content-length": String(bytes.length + (at === "all" ? 1 : 0)) });
      socket.write(sent);
      break;
    case "chunked":
      head({ "transfer-encoding": "chunked" });
      if (sent.length > 0) socket.write(`${sent.length.toString(16)}\r\n`);
      socket.write(sent);
      socket.write("\r\n");
      break;
    case "close":
      head({ connection: "close" });
      socket.write(sent);
      break;
    case "gzip":
      // The last 8 bytes are gzip's checksum and length (RFC 1952, 2.3).
      head({ "content-length": String(bytes.length - 8), connection: "close" });
      socket.write(bytes.subarray(0, bytes.length - 8));
  }
}

function cutAt(bytes: Buffer, at: "half" | "line" | "all"): number {
  if (at === "all") return bytes.length;
  const half = Math.floor(bytes.length / 2);
  return at === "line" ? bytes.lastIndexOf(0x0a, half) + 1 || half : half;
}

async function drip(socket: Socket, bytes: Buffer, ms: number): Promise<void> {
  const pieces = 10;
  const size = Math.ceil(bytes.length / pieces);
  for (let i = 0; i < pieces && !socket.destroyed; i++) {
    await wait(ms / pieces);
    socket.write(bytes.subarray(i * size, (i + 1) * size));
  }
}

function headersOf(response: Response, gzip: boolean): Record<string, string> {
  const encoding: Record<string, string> = gzip ? { "content-encoding": "gzip" } : {};
  return { "content-type": response.type, ...response.headers, vary: "accept-encoding", ...encoding };
}

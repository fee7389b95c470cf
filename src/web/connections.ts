import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import { type IsProxy, networkOf } from "./proxies.ts";

export interface ConnectionLimits {
  /** From the connection, or the first byte of a later request, to the last byte of the head. */
  readonly headMs: number;
  /** From the same start to the last byte of the body. A form of 256 KB takes 20 s at 100 kbit/s. */
  readonly requestMs: number;
  readonly checkedEveryMs: number;
  /** Without a byte in either direction while a response is made or sent. Live pages send one every 15 s. */
  readonly silentMs: number;
  /**
   * Between two requests. Load balancers reuse a connection for up to 60 s, and must not meet a closing one.
   */
  readonly idleMs: number;
  readonly connections: number;
  /** A trusted proxy is not counted: it connects for many. */
  readonly connectionsOfAddress: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  headMs: 10_000,
  requestMs: 30_000,
  checkedEveryMs: 2_000,
  silentMs: 120_000,
  idleMs: 72_000,
  connections: 1_000,
  connectionsOfAddress: 200,
};

/** Makes servers that share one count of connections. More than the limit are closed at once. */
export function boundedServers(
  limits: ConnectionLimits,
  isProxy: IsProxy,
): (handler: RequestListener) => Server {
  const open = new Map<string, number>();
  let total = 0;
  const count = (from: string, by: number) => {
    total += by;
    const left = (open.get(from) ?? 0) + by;
    if (left === 0) open.delete(from);
    else open.set(from, left);
    return left;
  };
  const admit = (socket: Socket) => {
    const { remoteAddress } = socket;
    const from = networkOf(remoteAddress ?? "");
    const ofAddress = count(from, 1);
    socket.once("close", () => count(from, -1));
    const isOneTooMany = ofAddress > limits.connectionsOfAddress && !isProxy(remoteAddress);
    if (isOneTooMany || total > limits.connections) socket.destroy();
  };
  return (handler) => {
    const server = createServer(
      {
        headersTimeout: limits.headMs,
        requestTimeout: limits.requestMs,
        connectionsCheckingInterval: limits.checkedEveryMs,
        keepAliveTimeout: limits.idleMs,
      },
      handler,
    );
    return server.setTimeout(limits.silentMs).on("connection", admit);
  };
}

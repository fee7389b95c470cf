import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import { type IsProxy, networkOf } from "./proxies.ts";

export interface ConnectionLimits {
  /** Longest time from the connection, or the first byte of a later request, to the last byte of the head. */
  readonly headMs: number;
  /** Longest time from the same start to the last byte of the body. A form of 256 KB takes 20 s at 100 kbit/s. */
  readonly requestMs: number;
  readonly checkedEveryMs: number;
  /** Longest silence in both directions during a response. Live pages send a byte every 15 s. */
  readonly silentMs: number;
  /** Longest pause between two requests. It exceeds 60 s, for which load balancers reuse a connection. */
  readonly idleMs: number;
  readonly connections: number;
  /** Does not apply to a trusted proxy, which connects for many people. */
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

/** Creates servers that share one count of connections. Connections above a limit are closed at once. */
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

import { connect, createServer, type Socket } from "node:net";
import { listenInTest } from "./listen.ts";

/** What happens to a piece that one side sent. Default of a connection: `pass`. */
type Fate = "pass" | "swallow";

export interface TcpProxy {
  readonly port: number;
  /** The URL with the proxy in place of its host and port. */
  through(url: string): string;
  /** Decides on each piece. A connection that lost one piece stays open and silent for ever, as a half-open one does. */
  decide: (piece: {
    readonly from: "client" | "server";
    readonly data: Buffer;
    readonly isNew: boolean;
  }) => Fate;
  /** Silences all present connections; with `newOnes`, later ones too until `thaw`. Returns the present ones. */
  freeze(options?: { newOnes?: boolean }): Socket[];
  /** Takes nothing more from clients: what they send fills their buffers. */
  stall(): void;
  /** New connections pass again. */
  thaw(): void;
  /** Ends all present connections with a reset; with `newOnes`, later ones too until `thaw`. */
  cut(options?: { newOnes?: boolean }): void;
  /** Present connections of clients. */
  readonly open: ReadonlySet<Socket>;
}

/** Forwards TCP connections to a port of this host, and loses what a test says. */
export async function startTcpProxy(target: string | number): Promise<TcpProxy> {
  const port = typeof target === "number" ? target : Number(new URL(target).port);
  const open = new Set<Socket>();
  const silent = new WeakSet<Socket>();
  let isFrozen = false;
  let isCut = false;
  const server = createServer((near) => {
    if (isCut) return void near.resetAndDestroy();
    const far = connect(port, "127.0.0.1");
    open.add(near);
    if (isFrozen) silent.add(near);
    const pass = (from: "client" | "server", to: Socket) => (data: Buffer) => {
      if (!silent.has(near) && proxy.decide({ from, data, isNew: far.bytesWritten === 0 }) === "swallow") {
        silent.add(near);
      }
      if (!silent.has(near)) to.write(data);
    };
    near.on("data", pass("client", far));
    far.on("data", pass("server", near));
    near.on("error", () => {});
    far.on("error", () => silent.has(near) || near.destroy());
    near.on("close", () => {
      open.delete(near);
      far.destroy();
    });
    far.on("close", () => silent.has(near) || near.destroy());
  });
  const own = await listenInTest(server);
  const proxy: TcpProxy = {
    port: own,
    open,
    through: (url) => {
      const parsed = new URL(url);
      parsed.host = `127.0.0.1:${own}`;
      return parsed.href;
    },
    decide: () => "pass",
    freeze: ({ newOnes = false } = {}) => {
      isFrozen = newOnes;
      for (const near of open) silent.add(near);
      return [...open];
    },
    stall: () => {
      for (const near of open) silent.add(near.pause());
    },
    thaw: () => {
      isFrozen = false;
      isCut = false;
    },
    cut: ({ newOnes = false } = {}) => {
      isCut = newOnes;
      for (const near of open) near.resetAndDestroy();
    },
  };
  return proxy;
}

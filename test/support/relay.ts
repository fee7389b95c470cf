import { connect, createServer, type Socket } from "node:net";
import { listenInTest } from "./listen.ts";

export interface Link {
  isSilent: boolean;
  /** Nothing more is taken from the client, so what it sends fills its buffers. */
  isStalled: boolean;
  silence(): void;
  stall(): void;
  cut(): void;
}

/** Looks at the bytes of one connection. Returns what goes on: all, a part, or nothing. */
export interface Filter {
  toServer(bytes: Buffer, link: Link): Buffer;
  toClient(bytes: Buffer, link: Link): Buffer;
}

export interface Relay {
  readonly port: number;
  through(url: string | undefined): string;
  target: number;
  delayMs: number;
  accepts: "all" | "none" | "silent";
  decide: (piece: { readonly from: "client" | "server"; readonly data: Buffer }) => "pass" | "swallow";
  cut(options?: { newOnes?: boolean }): void;
  silence(options?: { newOnes?: boolean }): void;
  stall(): void;
  readonly open: ReadonlySet<Link>;
  close(): Promise<void>;
}

interface RelayOptions {
  readonly filterOf?: () => Filter;
  readonly isHalfOpen?: boolean;
}

export async function openRelay(
  target: number | string,
  { filterOf = () => PASS, isHalfOpen = false }: RelayOptions = {},
): Promise<Relay> {
  const links = new Set<Link>();
  const server = createServer((client) => {
    client.on("error", () => {});
    if (relay.accepts === "none") return void client.resetAndDestroy();
    const upstream = connect(relay.target, "127.0.0.1");
    upstream.on("error", () => {});
    const link: Link = {
      isSilent: relay.accepts === "silent",
      isStalled: false,
      silence: () => {
        link.isSilent = true;
      },
      stall: () => {
        Object.assign(link, { isSilent: true, isStalled: true });
        client.pause();
      },
      cut: () => {
        client.resetAndDestroy();
        upstream.destroy();
        links.delete(link);
      },
    };
    links.add(link);
    const filter = filterOf();
    const toServer = forward(link, {
      from: client,
      to: upstream,
      change: (data) =>
        relay.decide({ from: "client", data }) === "pass" ? filter.toServer(data, link) : undefined,
    });
    const toClient = forward(link, {
      from: upstream,
      to: client,
      change: (data) =>
        relay.decide({ from: "server", data }) === "pass" ? filter.toClient(data, link) : undefined,
      delay: () => relay.delayMs,
    });
    const closed = (other: Socket, arrived: () => Promise<void>) => async () => {
      await arrived();
      if (!link.isSilent || (other === upstream && !isHalfOpen)) other.destroy();
      if (client.destroyed && upstream.destroyed) links.delete(link);
    };
    client.on("close", closed(upstream, toServer));
    upstream.on("close", closed(client, toClient));
  });
  const port = await listenInTest(server);
  const relay: Relay = {
    port,
    through: (url = "") => {
      const changed = Object.assign(new URL(url), { host: `127.0.0.1:${port}` });
      return changed.href.replace(/\/$/, "");
    },
    target: typeof target === "number" ? target : Number(new URL(target).port),
    delayMs: 0,
    accepts: "all",
    decide: () => "pass",
    cut: ({ newOnes = false } = {}) => {
      if (newOnes) relay.accepts = "none";
      for (const link of links) link.cut();
    },
    silence: ({ newOnes = false } = {}) => {
      if (newOnes) relay.accepts = "silent";
      for (const link of links) link.silence();
    },
    stall: () => {
      for (const link of links) link.stall();
    },
    open: links,
    close: async () => {
      relay.cut();
      await new Promise((closed) => server.close(closed));
    },
  };
  return relay;
}

export const PASS: Filter = { toServer: (bytes) => bytes, toClient: (bytes) => bytes };

interface Direction {
  readonly from: Socket;
  readonly to: Socket;
  readonly change: (data: Buffer) => Buffer | undefined;
  readonly delay?: () => number;
}

/** Returns what resolves once all that was sent so far has arrived. */
function forward(link: Link, { from, to, change, delay = () => 0 }: Direction): () => Promise<void> {
  let last = Promise.resolve();
  from.on("data", (piece) => {
    if (link.isSilent) return;
    const bytes = change(piece);
    if (bytes === undefined) link.silence();
    if (link.isSilent || bytes === undefined || bytes.length === 0) return;
    const ms = delay();
    const send = () => {
      if (link.isSilent || to.destroyed || to.write(bytes)) return;
      from.pause();
      to.once("drain", () => link.isStalled || from.resume());
    };
    if (ms === 0) return send();
    last = last.then(() => new Promise((passed) => setTimeout(passed, ms))).then(send);
  });
  from.on("end", () => {
    if (!link.isSilent) void last.then(() => to.end());
  });
  return () => last;
}

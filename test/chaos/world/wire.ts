import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What one connection through a wire is: two sockets, and whether their bytes still arrive. */
interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Half-open: nothing arrives any more in either direction, and neither side learns of it. */
  isSilent: boolean;
}

/** Looks at the bytes of one connection. Returns what goes on: all, a part, or nothing. */
export interface Filter {
  toServer(bytes: Buffer, link: LinkControl): Buffer;
  toClient(bytes: Buffer, link: LinkControl): Buffer;
}

export interface LinkControl {
  /** Nothing more arrives, and neither side learns of it. */
  silence(): void;
  /** Both sides see a reset. */
  cut(): void;
}

/** A TCP relay between one process and one server, with the faults of a network. */
export interface Wire {
  readonly port: number;
  /** Port of 127.0.0.1 that new connections go to. */
  target: number;
  /** Milliseconds that each piece takes to the client. */
  delayMs: number;
  /** What new connections meet. */
  accepts: "all" | "none" | "silent";
  /** Resets what is connected. */
  cut(): void;
  /** What is connected becomes half-open. New connections work. */
  silence(): void;
  close(): Promise<void>;
}

export async function openWire(target: number, filterOf: () => Filter = () => PASS): Promise<Wire> {
  const links = new Set<Link>();
  const server = createServer((client) => {
    client.on("error", () => {});
    if (wire.accepts === "none") return void client.resetAndDestroy();
    const upstream = connect(wire.target, "127.0.0.1");
    upstream.on("error", () => {});
    const link: Link = { client, server: upstream, isSilent: wire.accepts === "silent" };
    links.add(link);
    const control: LinkControl = {
      silence: () => {
        link.isSilent = true;
      },
      cut: () => end(link),
    };
    const filter = filterOf();
    const toServer = forward(link, {
      from: client,
      to: upstream,
      change: (bytes) => filter.toServer(bytes, control),
    });
    const toClient = forward(link, {
      from: upstream,
      to: client,
      change: (bytes) => filter.toClient(bytes, control),
      delay: () => wire.delayMs,
    });
    // What a side sent before it closed still arrives.
    const closed = (other: Socket, arrived: () => Promise<void>) => async () => {
      await arrived();
      if (!link.isSilent) other.destroy();
      if (client.destroyed && upstream.destroyed) links.delete(link);
    };
    client.on("close", closed(upstream, toServer));
    upstream.on("close", closed(client, toClient));
  });
  const end = (link: Link) => {
    link.client.resetAndDestroy();
    link.server.destroy();
    links.delete(link);
  };
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const wire: Wire = {
    port: (server.address() as AddressInfo).port,
    target,
    delayMs: 0,
    accepts: "all",
    cut: () => {
      for (const link of links) end(link);
    },
    silence: () => {
      for (const link of links) link.isSilent = true;
    },
    close: async () => {
      wire.cut();
      await new Promise((closed) => server.close(closed));
    },
  };
  return wire;
}

const PASS: Filter = { toServer: (bytes) => bytes, toClient: (bytes) => bytes };

interface Direction {
  readonly from: Socket;
  readonly to: Socket;
  readonly change: (bytes: Buffer) => Buffer;
  readonly delay?: () => number;
}

/** Returns what resolves once all that was sent so far has arrived. */
function forward(link: Link, { from, to, change, delay = () => 0 }: Direction): () => Promise<void> {
  // Pieces keep their order, also where the delay becomes shorter.
  let last = Promise.resolve();
  from.on("data", (piece) => {
    if (link.isSilent) return;
    const bytes = change(piece);
    if (link.isSilent || bytes.length === 0) return;
    const ms = delay();
    const send = () => {
      if (link.isSilent || to.destroyed || to.write(bytes)) return;
      from.pause();
      to.once("drain", () => from.resume());
    };
    if (ms === 0) return send();
    last = last.then(() => new Promise((passed) => setTimeout(passed, ms))).then(send);
  });
  from.on("end", () => {
    if (!link.isSilent) void last.then(() => to.end());
  });
  return () => last;
}

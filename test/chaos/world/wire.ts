import { connect, createServer, type Socket } from "node:net";
import { listen } from "../../support/listen.ts";

/** One connection through a wire. */
interface Link {
  /** Half-open: nothing arrives any more in either direction, and neither side learns of it. */
  isSilent: boolean;
  silence(): void;
  /** Both sides see a reset. */
  cut(): void;
}

/** Looks at the bytes of one connection. Returns what goes on: all, a part, or nothing. */
interface Filter {
  toServer(bytes: Buffer, link: Link): Buffer;
  toClient(bytes: Buffer, link: Link): Buffer;
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
    const link: Link = {
      isSilent: wire.accepts === "silent",
      silence: () => {
        link.isSilent = true;
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
      change: (bytes) => filter.toServer(bytes, link),
    });
    const toClient = forward(link, {
      from: upstream,
      to: client,
      change: (bytes) => filter.toClient(bytes, link),
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
  const wire: Wire = {
    port: await listen(server),
    target,
    delayMs: 0,
    accepts: "all",
    cut: () => {
      for (const link of links) link.cut();
    },
    silence: () => {
      for (const link of links) link.silence();
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

/** What happens to the end of a load's transaction. */
type CommitFate = "pass" | "cut" | "silent";

/** `before`: the rows are copied, COMMIT is not sent. `after`: Postgres has committed, the reply is on its way. */
export type CommitHook = (moment: "before" | "after") => CommitFate;

/** What a process sends: `statement` before each statement, `commit` at the end of loads. */
interface PostgresHooks {
  readonly commit: CommitHook;
  readonly statement: () => void;
}

/**
 * Finds statements, and the COMMIT of loads, in a connection's messages (https://www.postgresql.org/docs/current/protocol-message-formats.html).
 * A transaction is a load if it copied rows.
 */
export function statementsOf({ commit: hook, statement }: PostgresHooks): Filter {
  const client = frames(false);
  const server = frames(true);
  let hasCopied = false;
  let isEnding = false;
  return {
    toServer: (bytes, link) =>
      client(bytes, ({ type, text }) => {
        if (type === "Q" || type === "P") statement();
        if (type === "c") hasCopied = true;
        if (type !== "Q" || !/^(commit|rollback)/i.test(text())) return true;
        isEnding = hasCopied && /^commit/i.test(text());
        hasCopied = false;
        return !isEnding || meets(hook("before"), link);
      }),
    toClient: (bytes, link) =>
      server(bytes, ({ type, text }) => {
        if (!isEnding || type !== "C" || text() !== "COMMIT") return true;
        isEnding = false;
        return meets(hook("after"), link);
      }),
  };
}

/** Calls `piece` before each piece that a process sends: to Redis, that is one command or several. */
export function piecesOf(piece: () => void): Filter {
  return {
    ...PASS,
    toServer: (bytes) => {
      piece();
      return bytes;
    },
  };
}

function meets(fate: CommitFate, link: Link): boolean {
  if (fate === "silent") link.silence();
  if (fate === "cut") link.cut();
  return fate === "pass";
}

interface Frame {
  readonly type: string;
  /** The text that the message begins with. */
  readonly text: () => string;
}

/** Cuts bytes into messages and passes on those before the first that `goesOn` refuses. */
function frames(isTypedFromStart: boolean) {
  let rest: Buffer = Buffer.alloc(0);
  let isTyped = isTypedFromStart;
  let isOver = false;
  return (bytes: Buffer, goesOn: (frame: Frame) => boolean): Buffer => {
    if (isOver) return Buffer.alloc(0);
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    let at = 0;
    for (;;) {
      const head = isTyped ? 1 : 0;
      if (rest.length < at + head + 4) break;
      const end = at + head + rest.readInt32BE(at + head);
      if (rest.length < end) break;
      const body = rest.subarray(at + head + 4, end);
      const type = isTyped ? String.fromCharCode(rest[at] ?? 0) : "";
      if (!goesOn({ type, text: () => body.toString("latin1", 0, Math.max(0, body.indexOf(0))) })) {
        isOver = true;
        break;
      }
      // Only the first message of a client has no type.
      isTyped = true;
      at = end;
    }
    const passed = rest.subarray(0, at);
    rest = rest.subarray(at);
    return passed;
  };
}

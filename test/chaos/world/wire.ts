import { type Filter, type Link, PASS } from "../../support/relay.ts";

type CommitFate = "pass" | "cut" | "silent";

export type CommitHook = (moment: "before" | "after") => CommitFate;

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
  readonly text: () => string;
}

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
      isTyped = true;
      at = end;
    }
    const passed = rest.subarray(0, at);
    rest = rest.subarray(at);
    return passed;
  };
}

import { fileURLToPath } from "node:url";
import { spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { onTestFinished } from "vitest";
import { environment } from "./cli.ts";
import { poll } from "./poll.ts";

const PROGRAM = fileURLToPath(new URL("../../src/cli.js", import.meta.url));

interface Terminal {
  readonly written: () => string;
  readonly lines: () => Promise<string[]>;
  /** Resolves when the text is on the terminal, on one line. If it does not come, it throws what is there instead. */
  readonly shows: (text: string) => Promise<void>;
  readonly type: (text: string) => void;
  readonly ended: Promise<number | null>;
}

export function onTerminal(args: readonly string[]): Terminal {
  const size = { cols: 80, rows: 100 };
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    name: "xterm-256color",
    ...size,
    env: environment(),
  });
  const screen = new xterm.Terminal({ ...size, allowProposedApi: true });
  let written = "";
  let isRunning = true;
  child.onData((piece) => {
    written += piece;
    screen.write(piece);
  });
  const ended = new Promise<number | null>((resolve) =>
    child.onExit(({ exitCode, signal }) => {
      isRunning = false;
      resolve(signal ? null : exitCode);
    }),
  );
  onTestFinished(async () => {
    if (isRunning) child.kill("SIGKILL");
    await ended;
    screen.dispose();
  });

  const lines = async () => {
    await new Promise<void>((resolve) => screen.write("", resolve));
    const { active } = screen.buffer;
    const all = Array.from(
      { length: active.length },
      (_, at) => active.getLine(at)?.translateToString(true) ?? "",
    );
    return all.slice(0, all.findLastIndex((line) => line !== "") + 1);
  };
  return {
    written: () => written,
    lines,
    shows: async (text) => {
      await poll(
        async () => {
          const there = await lines();
          if (there.some((line) => line.includes(text))) return true;
          throw new Error(`${text} is not on the terminal:\n${there.join("\n")}`);
        },
        { deadlineMs: 30_000, everyMs: 20 },
      );
    },
    type: (text) => child.write(text),
    ended,
  };
}

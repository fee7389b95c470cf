import { fileURLToPath } from "node:url";
import { spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { onTestFinished } from "vitest";
import { environment } from "./cli.ts";
import { poll } from "./poll.ts";

const PROGRAM = fileURLToPath(new URL("../../src/cli.js", import.meta.url));

interface Terminal {
  /** All that was written, with the sequences that control the terminal. */
  readonly written: () => string;
  /** The lines that a person sees now. A line that is longer than the terminal is several. Empty ones at the end are left out. */
  readonly lines: () => Promise<string[]>;
  /** Resolves when the text is on the terminal, on one line. If it does not come, it throws what is there instead. */
  readonly shows: (text: string) => Promise<void>;
  /** Types the text as a person does: `\r` is Enter, `\u0003` is Ctrl-C. */
  readonly type: (text: string) => void;
  /** The exit code, once the program has ended and all that it wrote has arrived. Null where a signal ended it. */
  readonly ended: Promise<number | null>;
}

/** Starts `usage-etl` on a pseudo-terminal of 80 columns, as a person does. Killed when the test ends. */
export function onTerminal(args: readonly string[]): Terminal {
  const size = { cols: 80, rows: 100 };
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    name: "xterm-256color",
    ...size,
    env: environment(),
  });
  // `buffer`, which tells what is shown, is part of what they call proposed.
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

import { fileURLToPath } from "node:url";
import { spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { onTestFinished } from "vitest";
import { environment } from "./cli.ts";
import { poll } from "./poll.ts";

const PROGRAM = fileURLToPath(new URL("../../src/cli.ts", import.meta.url));
/** Lines that scroll out of the screen and are still found. */
const SCROLLBACK = 10_000;

export interface Terminal {
  /** All that was written, with the sequences that control the terminal. */
  readonly written: () => string;
  /**
   * The lines that a person sees now, those that have scrolled out included. A line that is longer than the terminal is
   * several. Empty ones at the end are left out.
   */
  readonly lines: () => Promise<string[]>;
  /** Lines that did not fit, as they were written. */
  readonly tooLong: () => Promise<string[]>;
  /** Resolves when the text is on the terminal, on one line. Past the deadline it throws what is there instead. */
  readonly shows: (text: string | RegExp, deadlineMs?: number) => Promise<void>;
  /** Types the text as a person does: `\r` is Enter, `\u0003` is Ctrl-C. */
  readonly type: (text: string) => void;
  /** Changes the width. */
  readonly resize: (columns: number) => void;
  /** The exit code, once the program has ended and all that it wrote has arrived. Null where a signal ended it. */
  readonly ended: Promise<number | null>;
}

interface Where {
  readonly columns?: number;
  readonly rows?: number;
  /** What runs, with its arguments. Default: `usage-etl` with the arguments. */
  readonly program?: readonly string[];
}

/** Starts `usage-etl` on a pseudo-terminal of 80 columns and 24 rows, as a person does. Killed when the test ends. */
export function onTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { columns = 80, rows = 24, program = [process.execPath, PROGRAM] }: Where = {},
): Terminal {
  const [file = "", ...before] = program;
  const child = spawn(file, [...before, ...args], {
    name: "xterm-256color",
    cols: columns,
    rows,
    env: { ...environment(), ...env },
  });
  const screen = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: SCROLLBACK,
    // `buffer`, which tells what is shown, is part of what they call proposed.
    allowProposedApi: true,
  });
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

  const shown = async () => {
    await new Promise<void>((resolve) => screen.write("", resolve));
    const { active } = screen.buffer;
    const rows = Array.from({ length: active.length }, (_, at) => {
      const line = active.getLine(at);
      return {
        text: line?.translateToString(true) ?? "",
        goesOn: active.getLine(at + 1)?.isWrapped ?? false,
      };
    });
    return rows.slice(0, rows.findLastIndex(({ text }) => text !== "") + 1);
  };
  return {
    written: () => written,
    lines: async () => (await shown()).map(({ text }) => text),
    tooLong: async () => {
      const long: string[] = [];
      let joined = "";
      for (const { text, goesOn } of await shown()) {
        if (!goesOn && joined !== "") long.push(joined + text);
        joined = goesOn ? joined + text : "";
      }
      return long;
    },
    shows: async (text, deadlineMs = 30_000) => {
      await poll(
        async () => {
          const lines = (await shown()).map((line) => line.text);
          if (lines.some((line) => (typeof text === "string" ? line.includes(text) : text.test(line))))
            return true;
          throw new Error(`${text} is not on the terminal:\n${lines.join("\n")}`);
        },
        { deadlineMs, everyMs: 20 },
      );
    },
    type: (text) => child.write(text),
    resize: (width) => {
      child.resize(width, rows);
      screen.resize(width, rows);
    },
    ended,
  };
}

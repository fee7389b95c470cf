import { fileURLToPath } from "node:url";
import { spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { onTestFinished } from "vitest";
import { environment } from "./cli.ts";
import { poll } from "./poll.ts";

const PROGRAM = fileURLToPath(new URL("../../src/cli.js", import.meta.url));
/** Lines that scroll out of the screen and are still found. */
const SCROLLBACK = 10_000;

interface Terminal {
  /** All that was written, with the sequences that control the terminal. */
  readonly written: () => string;
  /**
   * The lines that a person sees now, those that have scrolled out included. A line that is longer than the terminal is
   * several. Empty ones at the end are left out.
   */
  readonly lines: () => Promise<string[]>;
  /** Lines that did not fit, as far as they did. */
  readonly tooLong: () => Promise<string[]>;
  /** Resolves when the text is on the terminal, on one line. Past the deadline it throws what is there instead. */
  readonly shows: (text: string | RegExp, deadlineMs?: number) => Promise<void>;
  /** Types the text as a person does: `\r` is Enter, `\u0003` is Ctrl-C. */
  readonly type: (text: string) => void;
  /** The exit code, once the program has ended and all that it wrote has arrived. Null where a signal ended it. */
  readonly ended: Promise<number | null>;
}

interface Where {
  readonly columns?: number;
  readonly rows?: number;
  readonly cwd?: string;
  /** What runs, with its arguments. Default: `usage-etl` with the arguments. */
  readonly program?: readonly string[];
}

/** Starts `usage-etl` on a pseudo-terminal of 80 columns and 24 rows, as a person does. Killed when the test ends. */
export function onTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { columns = 80, rows = 24, cwd, program: named = [process.execPath, PROGRAM] }: Where = {},
): Terminal {
  const [program = "", ...rest] = [...named, ...args];
  const child = spawn(program, rest, {
    name: "xterm-256color",
    cols: columns,
    rows,
    env: { ...environment(), ...env },
    ...(cwd === undefined ? {} : { cwd }),
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

  /** Each line of the screen, and whether it goes on in the next one. */
  const shown = async () => {
    await new Promise<void>((resolve) => screen.write("", resolve));
    const { active } = screen.buffer;
    const rows = Array.from({ length: active.length }, (_, at) => {
      const goesOn = active.getLine(at + 1)?.isWrapped ?? false;
      return { text: active.getLine(at)?.translateToString(!goesOn) ?? "", goesOn };
    });
    return rows.slice(0, rows.findLastIndex(({ text }) => text !== "") + 1);
  };
  const lines = async () => (await shown()).map(({ text }) => text.trimEnd());
  return {
    written: () => written,
    lines,
    tooLong: async () => (await shown()).flatMap(({ text, goesOn }) => (goesOn ? [text] : [])),
    shows: async (text, deadlineMs = 30_000) => {
      await poll(
        async () => {
          const there = await lines();
          if (there.some((line) => (typeof text === "string" ? line.includes(text) : text.test(line))))
            return true;
          throw new Error(`${text} is not on the terminal:\n${there.join("\n")}`);
        },
        { deadlineMs, everyMs: 20 },
      );
    },
    type: (text) => child.write(text),
    ended,
  };
}

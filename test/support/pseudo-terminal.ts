import { spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { poll } from "./poll.ts";

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
  /** The same, but a line that is longer than the terminal is one. */
  readonly wholeLines: () => Promise<string[]>;
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
  /** Kills the program, if it runs. */
  readonly close: () => Promise<void>;
}

/** Starts a program on a pseudo-terminal. */
export function openTerminal(
  [program = "", ...args]: readonly string[],
  given: { env: Readonly<Record<string, string>>; columns: number; rows: number; cwd?: string | undefined },
): Terminal {
  const { env, columns, rows, cwd } = given;
  const child = spawn(program, [...args], {
    name: "xterm-256color",
    cols: columns,
    rows,
    env,
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
  /** Whole lines, and how many rows each takes. */
  const joined = async () => {
    const whole: { text: string; rows: number }[] = [];
    let isOpen = false;
    for (const { text, goesOn } of await shown()) {
      const last = whole.at(-1);
      if (isOpen && last !== undefined) Object.assign(last, { text: last.text + text, rows: last.rows + 1 });
      else whole.push({ text, rows: 1 });
      isOpen = goesOn;
    }
    return whole;
  };
  const lines = async () => (await shown()).map(({ text }) => text.trimEnd());
  return {
    written: () => written,
    lines,
    wholeLines: async () => (await joined()).map(({ text }) => text),
    tooLong: async () => (await joined()).flatMap(({ text, rows }) => (rows > 1 ? [text] : [])),
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
    resize: (width) => {
      child.resize(width, rows);
      screen.resize(width, rows);
    },
    ended,
    close: async () => {
      if (isRunning) child.kill("SIGKILL");
      await ended;
      screen.dispose();
    },
  };
}

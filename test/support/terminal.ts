import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { environment } from "./cli.ts";
import { openTerminal, type Terminal } from "./pseudo-terminal.ts";

const PROGRAM = fileURLToPath(new URL("../../src/cli.js", import.meta.url));

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
  { columns = 80, rows = 24, cwd, program = [process.execPath, PROGRAM] }: Where = {},
): Terminal {
  const terminal = openTerminal([...program, ...args], {
    env: { ...environment(), ...env },
    columns,
    rows,
    cwd,
  });
  onTestFinished(() => terminal.close());
  return terminal;
}

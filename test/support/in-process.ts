import { main } from "../../src/app/program.ts";
import { runMain } from "./same-figures/program.ts";

/** Runs the program in this process, with this environment alone: most commands take less time than a start of Node. */
export const runHere = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  runMain(main, args, environment);

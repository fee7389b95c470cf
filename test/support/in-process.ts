import { main } from "../../src/app/program.ts";
import { runMain } from "./same-figures/program.ts";

export const runHere = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  runMain(main, args, environment);

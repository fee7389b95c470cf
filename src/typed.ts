import { basename, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "./root.ts";

const FOLDER = fileURLToPath(ROOT).replace(/\/$/, "");

interface Started {
  /** The script as it was named, links not followed. */
  readonly script: string;
  /** Folder of the person, not that of `npm run`. */
  readonly folder: string;
  /** What npm says of itself where it started the program. */
  readonly npmCommand?: string | undefined;
  readonly root?: string;
}

/**
 * How the program is called where it runs: installed, by `npx`, or in a clone. `npm run` works in the folder of the clone, so
 * who started the file itself elsewhere goes on so: another folder may hold another env file.
 */
export function programAs({ script, folder, npmCommand, root = FOLDER }: Started): string {
  if (basename(script) === "usage-etl") return npmCommand === "exec" ? "npx usage-etl" : "usage-etl";
  // A package whose program was started by its path.
  if (basename(script) === "cli.cjs") return /^[\w./-]+$/.test(script) ? `node ${script}` : "usage-etl";
  const inClone = "npm run -s usage-etl --";
  // A folder that a shell would have to be told in quotes stays unnamed: the text may be part of a JSON document.
  if (folder === root || !/^[\w./-]+$/.test(root)) return inClone;
  if (npmCommand !== "run-script") return `${root}/node_modules/.bin/node ${root}/src/cli.ts`;
  return folder.startsWith(root + sep) ? inClone : `npm --prefix ${root} run -s usage-etl --`;
}

/** What a person types to start this program, here. */
export const PROGRAM = programAs({
  script: process.argv[1] ?? "",
  folder: process.env.INIT_CWD ?? process.cwd(),
  npmCommand: process.env.npm_command,
});

/** A text whose commands (`` `usage-etl status` ``) are such that the person can type them. All messages pass here. */
export function asTyped(text: string, program = PROGRAM): string {
  return text.replaceAll("`usage-etl ", () => `\`${program} `);
}

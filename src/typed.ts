import { basename, dirname, sep } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

interface Started {
  /** The script as it was named, links not followed. */
  readonly script: string;
  /** Folder of the person, not that of `npm run`. */
  readonly folder: string;
  /** What npm says of itself where it started the program. */
  readonly npmCommand?: string | undefined;
  readonly root?: string;
}

/** How the program is called where it runs: installed, by `npx`, or in a clone, where no file is called `usage-etl`. */
export function programAs({ script, folder, npmCommand, root = ROOT }: Started): string {
  if (basename(script) === "usage-etl") return npmCommand === "exec" ? "npx usage-etl" : "usage-etl";
  const isWithin = folder === root || folder.startsWith(root + sep);
  // A folder that a shell would have to be told in quotes stays unnamed: the text may be part of a JSON document.
  const prefix = isWithin || !/^[\w./-]+$/.test(root) ? "" : `--prefix ${root} `;
  return `npm ${prefix}run -s usage-etl --`;
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

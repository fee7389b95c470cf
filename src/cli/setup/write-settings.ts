import { linkSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isSecret, toEnvFile } from "../../config/env-file.ts";
import { UsageError } from "../../errors.ts";

const HEAD = `# Settings of usage-etl, written by \`usage-etl init\`. docs/settings.md describes all of them.
# What the environment sets goes before this file. It may hold secrets: keep its mode 600.
`;

interface Target {
  readonly file: string;
  /** Folder for secrets, a file each. Undefined: they stand in the file. */
  readonly secrets: string | undefined;
  readonly overwrite: boolean;
}

/** Writes each file whole, with mode 600, and returns their paths. Error: `env_file_exists`, unless `overwrite`. */
export function writeSettings(settings: Readonly<Record<string, string>>, target: Target): string[] {
  const { secrets, overwrite } = target;
  const lines: Record<string, string> = {};
  const files: [path: string, text: string][] = [];
  for (const [name, value] of Object.entries(settings)) {
    if (secrets === undefined || !isSecret(name)) {
      lines[name] = value;
      continue;
    }
    const path = join(resolve(secrets), name);
    files.push([path, `${value}\n`]);
    lines[`${name}_FILE`] = path;
  }
  if (secrets !== undefined) mkdirSync(secrets, { recursive: true, mode: 0o700 });
  files.push([target.file, toEnvFile(lines, HEAD)]);
  for (const [path, text] of files) writeWhole(path, text, overwrite);
  return files.map(([path]) => path);
}

/** A reader sees the old file or the new one. */
function writeWhole(path: string, text: string, overwrite: boolean): void {
  const written = join(dirname(path), `.${basename(path)}.${process.pid}`);
  try {
    writeFileSync(written, text, { mode: 0o600, flag: "wx" });
    if (overwrite) renameSync(written, path);
    else linkSync(written, path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EEXIST") throw fileExists(path);
    throw new UsageError({
      code: "env_file_unwritable",
      message: `${path} cannot be written: ${code}.`,
      next: "Create its folder, or name another place with --file and --secrets.",
      cause,
    });
  } finally {
    rmSync(written, { force: true });
  }
}

export function fileExists(path: string): UsageError {
  return new UsageError({
    code: "env_file_exists",
    message: `${path} is there already.`,
    next: "Add --overwrite to replace it, or write elsewhere with --file.",
  });
}

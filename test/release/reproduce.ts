import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { ROOT } from "./lock.ts";

/**
 * `npm run package:reproduce [-- TARBALL]`: packs what is committed, in a folder, time zone and umask of its own, and compares it byte
 * for byte with the tarball that is given; without one, with a second packing elsewhere. Exit code 1: they differ.
 */

const [given] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "usage-etl-pack-"));
try {
  const own = packed("a folder", { TZ: "Asia/Kathmandu" }, 0o077);
  const other = given ?? packed("another-folder", { TZ: "America/St_Johns" }, 0o022);
  process.stdout.write(
    `${sumOf(readFileSync(own))}  packed here\n${sumOf(readFileSync(other))}  ${given ?? "packed again"}\n`,
  );
  if (readFileSync(own).equals(readFileSync(other)))
    process.stdout.write("They are the same, byte for byte.\n");
  else {
    process.exitCode = 1;
    const isCompression = gunzipSync(readFileSync(own)).equals(gunzipSync(readFileSync(other)));
    process.stdout.write(
      isCompression
        ? "The files are the same, compressed by another zlib: use the Node that the release names.\n"
        : `They differ: compare \`tar tvzf\` of both. The commit has to be that of the release, and \`npm ci\` its packages.\n`,
    );
  }
} finally {
  rmSync(folder, { recursive: true });
}

/** The path of a tarball of what is committed. */
function packed(name: string, env: Record<string, string>, umask: number): string {
  process.umask(umask);
  const clone = join(folder, name);
  run("git", ["clone", "--quiet", ROOT, clone], { cwd: folder });
  symlinkSync(join(ROOT, "node_modules"), join(clone, "node_modules"));
  const said = run("npm", ["pack", "--silent", "--pack-destination", clone], { cwd: clone, env });
  return join(clone, said.trim().split("\n").at(-1) ?? "");
}

function run(
  program: string,
  args: readonly string[],
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    ...{ cwd, env: { ...process.env, ...env }, encoding: "utf8" },
  });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${status}: ${stderr}`);
  return stdout;
}

function sumOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

/** The import rules of biome.jsonc, each proved with a planted violation: a rule that reads nothing also passes. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const FORBIDDEN = [
  ["src/domain/planted.ts", "../store/load.ts"],
  ["src/domain/planted.ts", "../config.ts"],
  ["src/domain/planted.ts", "node:fs"],
  ["src/platform/planted.ts", "../store/load.ts"],
  ["src/platform/planted.ts", "../pipeline/plan.ts"],
  ["src/store/planted.ts", "../platform/http.ts"],
  ["src/store/planted.ts", "../cli/exit.ts"],
  ["src/pipeline/planted.ts", "../cli/exit.ts"],
  ["src/pipeline/planted.ts", "../standin/server.ts"],
  ["src/services/planted.ts", "../store/load.ts"],
  ["src/dashboard/planted.ts", "../pipeline/plan.ts"],
  ["jobs/planted.ts", "../src/store/load.ts"],
  ["jobs/planted.ts", "../src/domain/stride.ts"],
  ["src/standin/planted.ts", "../errors.ts"],
  ["src/standin/rooms/planted.ts", "../../errors.ts"],
] as const;

const ALLOWED = [
  ["src/domain/planted.ts", "./plan.ts"],
  ["src/platform/planted.ts", "../domain/plan.ts"],
  ["src/platform/planted.ts", "../errors.ts"],
  ["src/store/planted.ts", "../domain/plan.ts"],
  ["src/pipeline/planted.ts", "../store/load.ts"],
  ["src/standin/rooms/planted.ts", "../engine/ledger.ts"],
  ["src/cli/planted.ts", "../standin/server.ts"],
  ["src/dashboard/planted.ts", "../store/overview.ts"],
  ["jobs/planted.ts", "../src/pipeline/plan.ts"],
] as const;

/** Whether the linter refuses this import, in a tree that holds nothing else. */
async function isRefused(file: string, imported: string): Promise<boolean> {
  const tree = await mkdtemp(join(tmpdir(), "usage-etl-imports-"));
  onTestFinished(() => rm(tree, { recursive: true }));
  await cp(join(ROOT, "biome.jsonc"), join(tree, "biome.jsonc"));
  await mkdir(dirname(join(tree, file)), { recursive: true });
  await writeFile(join(tree, file), `import { planted } from "${imported}";\n\nplanted();\n`);
  const biome = join(ROOT, "node_modules/.bin/biome");
  const run = promisify(execFile)(biome, ["lint", "--colors=off", "--vcs-enabled=false", "."], { cwd: tree });
  const output = await run.then(
    () => "",
    (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
  );
  return output.includes("noRestrictedImports");
}

test.each(FORBIDDEN)("%s must not import %s", async (file, imported) => {
  expect(await isRefused(file, imported)).toBe(true);
});

test.each(ALLOWED)("%s may import %s", async (file, imported) => {
  expect(await isRefused(file, imported)).toBe(false);
});

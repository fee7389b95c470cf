import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";

/** The import rules of biome.jsonc, each proved with a planted violation: a rule that reads nothing also passes. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const FORBIDDEN = [
  ["src/domain/planted.ts", "../store/load/load.ts"],
  ["src/domain/planted.ts", "../errors.ts"],
  ["src/domain/time/planted.ts", "../../errors.ts"],
  ["src/domain/time/planted.ts", "node:fs"],
  ["src/platform/http/planted.ts", "../../store/load/load.ts"],
  ["src/platform/planted.ts", "../pipeline/sync/plan.ts"],
  ["src/store/db/planted.ts", "../../platform/http/http.ts"],
  ["src/store/planted.ts", "../config/config.ts"],
  ["src/store/planted.ts", "../cli/exit.ts"],
  ["src/pipeline/sync/planted.ts", "../../cli/session/exit.ts"],
  ["src/pipeline/planted.ts", "../local/standin/server.ts"],
  ["src/pipeline/planted.ts", "../service/serve.ts"],
  ["src/warehouse/planted.ts", "../store/export/views.ts"],
  ["src/local/planted.ts", "../cli/report/output.ts"],
  ["src/local/demo/planted.ts", "../../pipeline/sync/plan.ts"],
  ["src/local/servers/planted.ts", "../../store/load/load.ts"],
  ["src/local/servers/planted.ts", "../standin/server.ts"],
  ["src/cli/session/planted.ts", "../../local/standin/server.ts"],
  ["src/service/planted.ts", "../local/servers/resolve.ts"],
  ["src/config/planted.ts", "../domain/record.ts"],
  ["src/service/http/planted.ts", "../../pipeline/sync/plan.ts"],
  ["src/service/web/planted.ts", "../../cli/session/exit.ts"],
  ["src/service/web/coverage/planted.ts", "../../../../jobs/queues.ts"],
  ["src/service/mcp/planted.ts", "../../cli/session/exit.ts"],
  ["jobs/planted.ts", "../src/store/load/load.ts"],
  ["jobs/planted.ts", "../src/domain/time/stride.ts"],
  ["src/local/standin/planted.ts", "../../errors.ts"],
  ["src/local/standin/routes/planted.ts", "../../../errors.ts"],
] as const;

const ALLOWED = [
  ["src/domain/planted.ts", "./time/stride.ts"],
  ["src/domain/planning/planted.ts", "../time/stride.ts"],
  ["src/platform/http/planted.ts", "../../domain/time/stride.ts"],
  ["src/platform/planted.ts", "../config/config.ts"],
  ["src/platform/planted.ts", "../errors.ts"],
  ["src/store/load/planted.ts", "../../domain/time/stride.ts"],
  ["src/store/load/planted.ts", "../proof/differences.ts"],
  ["src/pipeline/proof/planted.ts", "../../store/load/load.ts"],
  ["src/local/standin/routes/planted.ts", "../engine/ledger.ts"],
  ["src/warehouse/planted.ts", "../errors.ts"],
  ["src/pipeline/planted.ts", "../warehouse/place.ts"],
  ["src/local/demo/planted.ts", "../standin/server.ts"],
  ["src/local/servers/planted.ts", "../../config/config.ts"],
  ["src/cli/commands/demo/planted.ts", "../../../local/standin/server.ts"],
  ["src/service/planted.ts", "../pipeline/sync/plan.ts"],
  ["src/service/http/planted.ts", "../../store/activity/overview.ts"],
  ["src/service/web/coverage/planted.ts", "../../../pipeline/sync/plan.ts"],
  ["src/service/mcp/planted.ts", "../web/figures/report.ts"],
  ["jobs/planted.ts", "../src/pipeline/sync/plan.ts"],
] as const;

/** What the linter's JSON report says of one place. */
interface Diagnostic {
  readonly category: string;
  readonly location: { readonly path: string };
}

const CASES = [...FORBIDDEN, ...ALLOWED];
/** Where the import of a case is planted: several cases name one file. */
const planted = CASES.map(([file], n) => file.replace("planted", `planted-${n}`));
let refused: ReadonlySet<string>;

/** The linter runs once, over a tree that holds nothing but the planted imports. */
beforeAll(async () => {
  const tree = await mkdtemp(join(tmpdir(), "usage-etl-imports-"));
  await cp(join(ROOT, "biome.jsonc"), join(tree, "biome.jsonc"));
  for (const [n, [, imported]] of CASES.entries()) {
    const file = join(tree, planted[n] as string);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `import { planted } from "${imported}";\n\nplanted();\n`);
  }
  const biome = join(ROOT, "node_modules/.bin/biome");
  const args = ["lint", "--reporter=json", "--max-diagnostics=none", "--vcs-enabled=false", "."];
  const run = promisify(execFile)(biome, args, { cwd: tree });
  const { stdout } = await run.catch((error: { stdout: string }) => error);
  const { diagnostics }: { diagnostics: Diagnostic[] } = JSON.parse(stdout);
  const restricted = diagnostics.filter(({ category }) => category === "lint/style/noRestrictedImports");
  refused = new Set(restricted.map(({ location }) => location.path));
  return () => rm(tree, { recursive: true });
});

test.each(FORBIDDEN)("%s must not import %s", (...[file, imported]) => {
  expect(isRefused(file, imported)).toBe(true);
});

test.each(ALLOWED)("%s may import %s", (...[file, imported]) => {
  expect(isRefused(file, imported)).toBe(false);
});

function isRefused(file: string, imported: string): boolean {
  const n = CASES.findIndex((one) => one[0] === file && one[1] === imported);
  return refused.has(planted[n] as string);
}

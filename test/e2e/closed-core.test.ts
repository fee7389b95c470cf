import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { start } from "../support/cli.ts";
import { bench, document, envOf, run } from "../support/program.ts";
import { wrongFigures } from "../support/tables.ts";
import { temporaryFolder } from "../support/temporary.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A copy of the program in which nobody wrote a feature; the demo shows features, so it does nothing there. */
function copyWithoutFeatures(): string {
  const folder = temporaryFolder();
  for (const part of ["jobs", "sql", "package.json", "tsconfig.json"])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  const isKept = (path: string) => !/\/src\/(features\/[\w-]+|app\/demo)$/.test(path);
  cpSync(join(ROOT, "src"), join(folder, "src"), { recursive: true, filter: isKept });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  writeFileSync(
    join(folder, "src/features.ts"),
    'import type { Feature } from "./features/feature.ts";\n\nexport const FEATURES: readonly Feature[] = [];\n',
  );
  mkdirSync(join(folder, "src/app/demo"));
  writeFileSync(
    join(folder, "src/app/demo/demo.ts"),
    "export const examples = [] as const;\nexport function define(): void {}\n",
  );
  return folder;
}

test("the core alone type-checks, loads, reconciles, and its views hold the platform's figures", async () => {
  const release = copyWithoutFeatures();
  const checked = spawnSync(join(ROOT, "node_modules/.bin/tsc"), { cwd: release, encoding: "utf8" });
  expect([checked.status, checked.stdout]).toEqual([0, ""]);

  const made = await bench({ workspaces: [0, 1], days: 6 });
  const inCopy = async (...args: string[]) => start(args, envOf(made), { release }).ended;
  expect(await inCopy("migrate")).toMatchObject({ code: 0 });
  expect(await inCopy("sync", "--inline")).toMatchObject({ code: 0, stderr: "" });
  const reconciled = await inCopy("reconcile", "--json");
  expect(document(reconciled)).toMatchObject([{ differences: [] }]);
  expect(reconciled.code).toBe(0);
  expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);
  const [{ proven } = { proven: 0 }] = await made.sql<{ proven: number }>(
    "SELECT count(*)::integer AS proven FROM reporting_detail.usage_coverage_daily WHERE is_reconciled",
  );
  expect(proven).toBeGreaterThan(0);
  expect(await inCopy("bill")).toMatchObject({ code: 2, stderr: expect.stringContaining("Unknown command") });
  expect(await run(["bill"], envOf(made))).not.toMatchObject({ code: 2 });
});

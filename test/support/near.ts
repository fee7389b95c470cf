import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * `npm run test:near`: lint and types, and the tests that are nearest to what was changed since the last commit, or in it where nothing
 * was. Nearest by imports: those that import a changed file themselves come first, shorter ones before longer ones, until some
 * seconds are full. It says how many more the change reaches: `npm test` runs them.
 */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BUDGET_MS = 15_000;
const UNKNOWN_MS = 2_000;
const READERS: readonly (readonly [folder: string, by: string])[] = [
  ["sql/", "src/core/store/migrate.ts"],
  ["docs/", "test/unit/docs.test.ts"],
  ["README.md", "test/unit/docs.test.ts"],
  ["docker-compose.yml", "test/unit/compose.test.ts"],
  ["docs/deploy/compose-secrets.yml", "test/unit/compose.test.ts"],
];

process.chdir(ROOT);
const changed = changedFiles();
if (changed.length === 0) say("Nothing was changed.");
else {
  const tests = nearestTests(changed);
  const chosen = withinBudget(tests);
  say(`Changed: ${changed.join(", ")}`);
  say(`${chosen.length} of ${tests.length} test files that it reaches. \`npm test\` runs the rest.`);
  const present = changed.filter((file) => existsSync(file) && /\.(ts|js|jsonc?|css)$/.test(file));
  const ended = [
    ...(present.length === 0 ? [] : [run("biome", "ci", "--error-on-warnings", ...present)]),
    run("npm", "run", "-s", "types"),
    ...(chosen.length === 0 ? [] : [run("vitest", "run", ...chosen)]),
  ];
  process.exitCode = ended.every((code) => code === 0) ? 0 : 1;
}

function changedFiles(): string[] {
  const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" }).split("\n");
  const uncommitted = [...git("diff", "--name-only", "HEAD"), ...git("ls-files", "-o", "--exclude-standard")];
  const files = uncommitted.filter((file) => file !== "");
  return files.length > 0
    ? files
    : git("diff", "--name-only", "HEAD~1", "HEAD").filter((file) => file !== "");
}

function nearestTests(files: readonly string[]): string[] {
  const importers = importersOf();
  const distance = new Map<string, number>();
  const sources = files.flatMap((file) => [
    file,
    ...READERS.filter(([folder]) => file.startsWith(folder)).map(([, by]) => by),
  ]);
  for (let at = 0, ring = sources; ring.length > 0; at++) {
    const fresh = [...new Set(ring)].filter((file) => !distance.has(file));
    for (const file of fresh) distance.set(file, at);
    ring = fresh.flatMap((file) => importers.get(file) ?? []);
  }
  const took = durations();
  const far = (file: string) => distance.get(file) ?? 0;
  const ms = (file: string) => took.get(file) ?? UNKNOWN_MS;
  return [...distance.keys()]
    .filter((file) => file.endsWith(".test.ts") && existsSync(file))
    .sort((a, b) => far(a) - far(b) || ms(a) - ms(b));
}

function withinBudget(tests: readonly string[]): string[] {
  const took = durations();
  let sum = 0;
  return tests.filter((file, at) => {
    sum += took.get(file) ?? UNKNOWN_MS;
    return at === 0 || sum <= BUDGET_MS;
  });
}

function importersOf(): Map<string, string[]> {
  const importers = new Map<string, string[]>();
  for (const file of globSync("{src,jobs,test}/**/*.ts", { exclude: ["test/tools/node_modules"] })) {
    for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(
      /\b(?:from|import\(?)\s*"(\.[^"]+)"/g,
    )) {
      const imported = normalize(join(dirname(file), specifier));
      importers.set(imported, [...(importers.get(imported) ?? []), file]);
    }
  }
  return importers;
}

function durations(): Map<string, number> {
  const [path] = globSync("node_modules/.vite/vitest/*/results.json");
  if (path === undefined) return new Map();
  const { projects } = JSON.parse(readFileSync(path, "utf8")) as {
    projects: Record<string, { files: Record<string, { duration: number }> }>;
  };
  return new Map(
    Object.values(projects).flatMap(({ files }) =>
      Object.entries(files).map(([file, { duration }]) => [file, duration] as const),
    ),
  );
}

function run(program: string, ...args: string[]): number | null {
  return spawnSync(program, args, { stdio: "inherit" }).status;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

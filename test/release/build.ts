import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DIST = join(ROOT, "dist");

rmSync(DIST, { recursive: true, force: true });
// `npm run types` has checked them.
execFileSync("tsc", ["--project", "test/release/tsconfig.json", "--noCheck"], {
  cwd: ROOT,
  stdio: "inherit",
});
for (const file of globSync("src/*/**/*.{css,csv,js,svg,yaml}", { cwd: ROOT }))
  cpSync(join(ROOT, file), join(DIST, file));
writeFileSync(join(ROOT, "npm-shrinkwrap.json"), `${JSON.stringify(productionLock(), null, 2)}\n`);
// Whoever packs may keep files to themselves; whoever installs has to read them.
const packed = globSync(["{dist,docs,sql}/**/*", "*.md", "*.json", "LICENSE"], {
  cwd: ROOT,
  withFileTypes: true,
});
for (const file of packed) if (file.isFile()) chmodSync(join(file.parentPath, file.name), 0o644);
chmodSync(join(ROOT, "src/cli.js"), 0o755);

function productionLock() {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const packages = Object.entries<{ dev?: boolean; devDependencies?: object }>(lock.packages).filter(
    // npm counts TypeScript as no development dependency, because a library could use it for its types.
    ([folder, { dev }]) => !dev && !/^node_modules\/@?typescript\b/.test(folder),
  );
  const [[, { devDependencies: _, ...root }] = ["", {}], ...others] = packages;
  return { ...lock, packages: { "": root, ...Object.fromEntries(others) } };
}

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The lock of what the package and the image bring: without development dependencies. */
export function productionLock() {
  const lock = JSON.parse(readFileSync(`${ROOT}package-lock.json`, "utf8"));
  const packages = Object.entries<{ dev?: boolean; devDependencies?: object }>(lock.packages).filter(
    // npm counts TypeScript as no development dependency, because a library could use it for its types.
    ([folder, { dev }]) => !dev && !/^node_modules\/@?typescript\b/.test(folder),
  );
  const [[, { devDependencies: _, ...root }] = ["", {}], ...others] = packages;
  return { ...lock, packages: { "": root, ...Object.fromEntries(others) } };
}

import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

interface Locked {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** `npm ci` refuses a lock that lacks an optional package, even one of another platform. */
test("the lock names every optional package, and no registry", async () => {
  const text = await readFile(new URL("../../package-lock.json", import.meta.url), "utf8");
  const packages: Record<string, Locked> = JSON.parse(text).packages;
  const isLocked = (from: string, name: string): boolean => {
    for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
      if (packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`] !== undefined) return true;
      if (folder === "") return false;
    }
  };
  const missing = Object.entries(packages).flatMap(([folder, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => !isLocked(folder, name)),
  );
  expect(missing).toEqual([]);
  expect(Object.values(packages).flatMap(({ resolved }) => resolved ?? [])).toEqual([]);
});

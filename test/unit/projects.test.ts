import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { PROJECTS } from "../support/projects.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A file in no project would never run, and nothing would say so. */
test("every test file belongs to exactly one vitest project", () => {
  const files = globSync("test/**/*.test.ts", { cwd: ROOT });
  expect(files.length).toBeGreaterThan(100);
  const folders = Object.values(PROJECTS).flat();
  const strays = files.filter(
    (file) => folders.filter((folder) => file.startsWith(`test/${folder}/`)).length !== 1,
  );
  expect(strays).toEqual([]);
});

test("every vitest project has test files and an npm script", () => {
  const { scripts } = JSON.parse(readFileSync(`${ROOT}/package.json`, "utf8"));
  for (const [name, folders] of Object.entries(PROJECTS)) {
    for (const folder of folders) {
      expect(globSync(`test/${folder}/**/*.test.ts`, { cwd: ROOT })).not.toEqual([]);
    }
    expect(scripts).toHaveProperty(`test:${name}`, `vitest run --project ${name}`);
  }
});

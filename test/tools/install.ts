import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { GO, JARS, PYTHON, TOOLS, UNTIL, venvOf } from "./counterparts.ts";

/**
 * `npm run tools`: installs what only the tests of this folder need, from npm, PyPI, Maven Central and the Go module proxy. What is installed already stays,
 * until its list changes. Without Python, Maven or Go their part is left out: the tests that need it are skipped and say so. With `REQUIRE_TOOLS` it fails.
 */

const UV = "0.13.9";
const uv = join(venvOf("uv"), "bin/uv");
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });

install("npm", join(TOOLS, "node_modules"), readFileSync(join(TOOLS, "package-lock.json"), "utf8"), () =>
  run("npm", "ci", "--no-audit", "--no-fund", "--prefix", TOOLS),
);
install("uv", venvOf("uv"), UV, (folder) => {
  run("python3", "-m", "venv", folder);
  run(join(folder, "bin/pip"), "install", "--quiet", `uv==${UV}`);
});
const pythons = globSync(join(homedir(), ".pyenv/versions/3.*/bin"));
for (const [name, { packages, without = [], python }] of Object.entries(PYTHON)) {
  install(
    `Python packages of ${name}`,
    venvOf(name),
    [UNTIL, ...packages, ...without].join("\n"),
    (folder) => {
      if (python === undefined) run(uv, "venv", "--quiet", folder);
      else
        execFileSync(uv, ["venv", "--quiet", "--python", python, folder], {
          stdio: "inherit",
          env: { ...process.env, PATH: [...pythons, process.env.PATH].join(delimiter) },
        });
      const left = join(folder, "without.txt");
      writeFileSync(left, without.map((one) => `${one}; python_version < '3'\n`).join(""));
      const options = ["--quiet", "--python", folder, "--exclude-newer", UNTIL, "--override", left];
      run(uv, "pip", "install", ...options, ...packages);
    },
  );
}
for (const { group, name, version } of JARS) {
  const folder = join(TOOLS, ".installed", name);
  install(`${name}.jar`, folder, version, () =>
    run(
      "mvn",
      "-q",
      "-B",
      "dependency:copy",
      `-Dartifact=${group}:${name}:${version}`,
      `-DoutputDirectory=${folder}`,
    ),
  );
}
for (const [name, module] of Object.entries(GO)) {
  install(name, venvOf(name), module, (folder) =>
    execFileSync("go", ["install", module], { stdio: "inherit", env: { ...process.env, GOBIN: folder } }),
  );
}

/** Fills a folder unless it was filled from the same list. A folder that was filled in part has no list, and is made anew. */
function install(what: string, folder: string, list: string, fill: (folder: string) => void): void {
  const note = join(folder, ".list");
  if (existsSync(note) && readFileSync(note, "utf8") === list) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    fill(folder);
    if (readdirSync(folder).length === 0) throw new Error(`${folder} is empty`);
    writeFileSync(note, list);
  } catch (error) {
    if (process.env.REQUIRE_TOOLS !== undefined || what === "npm") throw error;
    process.stderr.write(
      `${what}: not installed. Tests that need it are skipped. ${(error as Error).message}\n`,
    );
  }
}

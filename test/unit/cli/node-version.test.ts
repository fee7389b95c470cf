import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../support/temporary.ts";

const CLI = fileURLToPath(new URL("../../../src/cli.js", import.meta.url));

function runAs(version: string, cli: string) {
  const script = `Object.defineProperty(process, "versions", { value: { node: "${version}" } }); import("${cli}");`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
  return [status, stdout, stderr];
}

test.each(["12.22.12", "20.20.2", "24.11.1"])("a clone refuses Node %s with exit code 2", (version) => {
  expect(runAs(version, CLI)).toEqual([
    2,
    "",
    `Node ${version} cannot run usage-etl, which needs Node 24.12 or later.\n` +
      "  Run `npx usage-etl COMMAND`: it uses the Node that the project brings. [node_too_old]\n",
  ]);
});

test("the package runs on an older Node than a clone does", () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  copyFileSync(CLI, join(folder, "src/cli.js"));
  expect(runAs("22.18.0", join(folder, "src/cli.js"))).toEqual([
    2,
    "",
    "Node 22.18.0 cannot run usage-etl, which needs Node 22.19 or later.\n  Install a newer Node. [node_too_old]\n",
  ]);
});

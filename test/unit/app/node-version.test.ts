import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

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

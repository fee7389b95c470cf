import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../support/temporary.ts";

const at = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const message = (version: string) =>
  `Node ${version} cannot run usage-etl, which needs Node 24.12 or later.\n` +
  `  The project brings one: run \`npx usage-etl COMMAND\`, or ${at("node_modules/.bin/node")} in place of node. [node_too_old]\n`;

test.each(["12.22.12", "20.20.2", "24.11.1"])(
  "Node %s is refused in one sentence, with exit code 2",
  (version) => {
    const script = `Object.defineProperty(process, "versions", { value: { node: "${version}" } }); require("${at("src/cli.cjs")}");`;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
    expect([status, stdout, stderr]).toEqual([2, "", message(version)]);
  },
);

test("the package runs on an older Node than a clone does", () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "src"));
  copyFileSync(at("src/cli.cjs"), join(folder, "src/cli.cjs"));
  writeFileSync(join(folder, "package.json"), '{ "version": "1.2.3" }');
  const script = `Object.defineProperty(process, "versions", { value: { node: "22.18.0" } }); require("${folder}/src/cli.cjs");`;
  const { status, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
  expect([status, stderr]).toEqual([
    2,
    "Node 22.18.0 cannot run usage-etl, which needs Node 22.19 or later.\n" +
      "  Install a newer one, or let npm bring it: `npm install --prefix DIR ./usage-etl-1.2.3.tgz node@24`, with the path of the package. Then put DIR/node_modules/.bin first in PATH. [node_too_old]\n",
  ]);
});

test("an old Node of this machine says so for `node src/cli.ts`, which it cannot load", ({ skip }) => {
  const found = ["/usr/bin/node", "/usr/local/bin/node"].flatMap((path) => {
    const version = spawnSync(path, ["--version"], { encoding: "utf8" }).stdout?.trim().slice(1) ?? "";
    return version !== "" && Number(version.split(".")[0]) < 24 ? [{ path, version }] : [];
  });
  const [old] = found;
  if (old === undefined) return skip("this machine has no Node before 24");
  const { status, stdout, stderr } = spawnSync(old.path, [at("src/cli.ts"), "--help"], { encoding: "utf8" });
  expect([status, stdout, stderr]).toEqual([2, "", message(old.version)]);
});

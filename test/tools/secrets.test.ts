import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/temporary.ts";
import { goOf, notInstalled } from "./counterparts.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

test("gitleaks finds no secret in the tree, and finds one that is added", ({ skip }) => {
  const missing = notInstalled("gitleaks");
  if (missing !== undefined) skip(missing);
  const folder = temporaryFolder();
  const archive = execFileSync("git", ["archive", "HEAD"], { cwd: ROOT, maxBuffer: 1e9 });
  execFileSync("tar", ["x", "-C", folder], { input: archive });
  const scan = () => {
    const { status, stderr } = spawnSync(goOf("gitleaks"), ["dir", folder, "--no-banner"], {
      encoding: "utf8",
    });
    return [status, /leaks found: \d+|no leaks found/.exec(stderr)?.[0]];
  };
  expect(scan()).toEqual([0, "no leaks found"]);
  // In a test too, and although it begins like one that is listed.
  const key = ["lsv2_sk", "9f8e7d6c5b4a321001237aa3"].join("_");
  appendFileSync(join(folder, "test/support/program.ts"), `\nconst apiKey = "${key}";\n`);
  expect(scan()).toEqual([1, "leaks found: 1"]);
});

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../support/temporary.ts";

/** `npm run package:check` installs it from npm and runs the demo on several versions of Node. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const packed = ["src/cli.js", "dist", "sql", "docs"];

test("a package holds what runs without a clone, and nothing of this machine", () => {
  const folder = temporaryFolder();
  // Its secrets must stay at home.
  const planted = ["docs/.env", "sql/usage-etl.env"].map((path) => join(ROOT, path));
  onTestFinished(() => planted.forEach((path) => void rmSync(path, { force: true })));
  for (const path of planted) writeFileSync(path, "USAGE_API_KEY=planted\n");
  execFileSync("npm", ["pack", "--pack-destination", folder], { cwd: ROOT, stdio: "ignore" });
  const [tarball = ""] = readdirSync(folder);
  execFileSync("tar", ["xzf", tarball], { cwd: folder });
  const home = join(folder, "package");
  const files = readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(home.length + 1));
  const top = files.filter((file) => !packed.some((part) => file === part || file.startsWith(`${part}/`)));
  expect(top.sort()).toEqual([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "npm-shrinkwrap.json",
    "package.json",
  ]);
  expect(files.filter((file) => /\.tsx?$|\.env$|\.png$/.test(file))).toEqual([]);
  for (const part of ["src", "jobs"]) {
    const compiled = readdirSync(join(ROOT, part), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(ts|js|css|csv|svg)$/.test(file) && file !== "cli.js")
      .map((file) => join("dist", part, file.replace(/\.ts$/, ".js")));
    expect(compiled.filter((file) => !files.includes(file))).toEqual([]);
    expect(compiled.filter((file) => /\.js$/.test(file) && !/assets/.test(file)).length).toBeGreaterThan(10);
  }
  const pages = files.filter((file) => file.endsWith(".md"));
  const links = pages.flatMap((page) =>
    [...readFileSync(join(home, page), "utf8").matchAll(/(?:\]\(|srcset="|src=")([^)"\s#]+)/g)]
      .filter(([, link = ""]) => !/^[a-z]+:/.test(link))
      .map(([, link = ""]) => join(page, "..", link))
      .filter((path) => !existsSync(join(home, path))),
  );
  const others = links.filter((path) => !/^docs\/pictures\/[\w-]+\.png$/.test(path));
  expect([...new Set(others)].sort()).toEqual(["CONTRIBUTING.md"]);
  const texts = files.map((file) => ({ file, text: readFileSync(join(home, file), "utf8") }));
  const local = [ROOT.slice(0, -1), "USAGE_API_KEY=planted"];
  expect(
    texts.filter(({ text }) => local.some((path) => text.includes(path))).map(({ file }) => file),
  ).toEqual([]);
  const { packages } = JSON.parse(readFileSync(join(home, "npm-shrinkwrap.json"), "utf8"));
  expect(Object.keys(packages)).toContain("node_modules/pg");
  expect(Object.keys(packages).filter((name) => /typescript|vitest|node_modules\/node$/.test(name))).toEqual(
    [],
  );

  symlinkSync(join(ROOT, "node_modules"), join(home, "node_modules"));
  symlinkSync(join(home, "src/cli.js"), join(folder, "usage-etl"));
  const run = (...args: string[]) => {
    const env = { PATH: process.env.PATH, HOME: folder };
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "usage-etl"), ...args], {
      cwd: folder,
      env,
      encoding: "utf8",
    });
    return { status, said: `${stdout}${stderr}` };
  };
  expect(run("demo", "--help")).toMatchObject({
    status: 0,
    said: expect.stringMatching(new RegExp(`default:\\s+"${folder}/.local/share/usage-etl/demo"`)),
  });
  expect(run("doctor")).toMatchObject({ status: 2, said: expect.stringContaining("Run `usage-etl init`") });
});

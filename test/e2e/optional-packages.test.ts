import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { bench, document, envOf, run } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

function installWithoutOptional(): string {
  const folder = temporaryFolder();
  for (const part of ["src", "jobs", "sql", "package.json"])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const packages = readdirSync(join(ROOT, "node_modules")).flatMap((name) =>
    name.startsWith("@")
      ? readdirSync(join(ROOT, "node_modules", name)).map((part) => `${name}/${part}`)
      : [name],
  );
  for (const name of packages) {
    if (name in optionalDependencies || name.startsWith(".")) continue;
    mkdirSync(join(folder, "node_modules", name, ".."), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
  }
  return folder;
}

const MAIL = { USAGE_ROUTE_SMTP: "smtp://127.0.0.1:9" };
const NO_MAIL = "cannot send mail from here: The package nodemailer is required and not installed";

function ownersWithMail(): string {
  const file = join(temporaryFolder(), "owners.yaml");
  const route = "name: post, type: email, secret: USAGE_ROUTE_SMTP, from: a@b.example, to: [c@d.example]";
  writeFileSync(file, `rules: [{ owner: all }]\nroutes: [{ ${route} }]\n`);
  return file;
}

test("without optional packages usage is loaded and proven, and what needs one names it", async () => {
  const release = installWithoutOptional();
  const made = await bench({ workspaces: [0], days: 6 });
  const inCopy = (...args: string[]) => run(args, envOf(made), { release });
  expect(await inCopy("sync", "--inline")).toMatchObject({ code: 0, stderr: "" });
  expect(document(await inCopy("reconcile", "--json"))).toMatchObject([{ differences: [] }]);
  expect(await inCopy("export", "--view", "dim_workspace")).toMatchObject({ code: 0 });
  const owners = ownersWithMail();
  const env = { ...envOf(made), ...MAIL };
  expect(await run(["owners", "apply", owners], env, { release })).toMatchObject({ code: 0 });
  expect(document(await run(["doctor", "--json"], env, { release }))).toContainEqual(
    expect.objectContaining({
      check: "routes",
      status: "warn",
      code: "route_failed",
      finding: `Route post: ${NO_MAIL}.`,
    }),
  );
  expect(document(await run(["alerts", "--json"], env, { release }))).toMatchObject({
    routes: [{ missing: NO_MAIL }],
  });
  expect(document(await run(["alerts", "--json"], env))).toMatchObject({ routes: [{ missing: null }] });
  for (const [name, ...args] of [
    ["@modelcontextprotocol/server", "mcp"],
    ["hyparquet-writer", "export", "--view", "dim_workspace", "--format", "parquet"],
    ["@aws-sdk/client-s3", "files", "write", "--to", "s3://bucket/usage"],
  ]) {
    const refused = await inCopy(...args);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(`\`npm install ${name}\``)]);
    expect(refused.stderr).toContain("[package_missing]");
  }
});

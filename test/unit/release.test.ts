import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { writeReleaseFiles } from "../release/files.ts";
import { productionLock, ROOT } from "../release/lock.ts";
import { temporaryFolder } from "../support/temporary.ts";

/** What a release publishes, and the workflow that does it. Nothing here needs the network. */

const build = {
  repository: "https://git.test/someone/usage-etl",
  commit: "0123456789abcdef0123456789abcdef01234567",
  builder: "https://git.test/someone/usage-etl/.github/workflows/release.yml@refs/tags/v0.3.0",
  tools: { node: "24.0.0", npm: "11.0.0" },
};

/** A package of two files, as npm lays them out. */
function smallTarball(): string {
  const folder = temporaryFolder();
  const inside = join(folder, "made", "package");
  mkdirSync(inside, { recursive: true });
  const manifest = { ...JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")), version: "9.8.7" };
  writeFileSync(join(inside, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(inside, "npm-shrinkwrap.json"), JSON.stringify(productionLock()));
  const tarball = join(folder, "usage-etl-9.8.7.tgz");
  execFileSync("tar", ["czf", tarball, "package"], { cwd: join(folder, "made") });
  rmSync(join(folder, "made"), { recursive: true });
  return tarball;
}

describe("npm run release:files", () => {
  test("names every published file by the SHA-256 of its bytes", () => {
    const tarball = smallTarball();
    const folder = join(tarball, "..");
    writeReleaseFiles(tarball, build);
    const published = ["usage-etl-9.8.7.cdx.json", "usage-etl-9.8.7.intoto.json", "usage-etl-9.8.7.tgz"];
    expect(readdirSync(folder).sort()).toEqual(["SHA256SUMS", ...published]);
    const check = () =>
      execFileSync("sha256sum", ["--check", "--strict", "SHA256SUMS"], {
        ...{ cwd: folder, encoding: "utf8", stdio: "pipe" },
      });
    expect(check().trim().split("\n").sort()).toEqual(published.map((name) => `${name}: OK`));

    const { _type, predicateType, subject, predicate } = JSON.parse(
      readFileSync(join(folder, "usage-etl-9.8.7.intoto.json"), "utf8"),
    );
    expect([_type, predicateType]).toEqual([
      "https://in-toto.io/Statement/v1",
      "https://slsa.dev/provenance/v1",
    ]);
    const bytesOf = (name: string) => readFileSync(join(folder, name));
    expect(subject).toEqual(
      ["usage-etl-9.8.7.tgz", "usage-etl-9.8.7.cdx.json"].map((name) => ({
        name,
        digest: { sha256: createHash("sha256").update(bytesOf(name)).digest("hex") },
      })),
    );
    const { buildDefinition, runDetails } = predicate;
    expect(buildDefinition.externalParameters).toEqual({
      repository: build.repository,
      ref: "refs/tags/v9.8.7",
    });
    expect(buildDefinition.resolvedDependencies).toEqual([
      { uri: `git+${build.repository}@refs/tags/v9.8.7`, digest: { gitCommit: build.commit } },
    ]);
    for (const uri of [buildDefinition.buildType, runDetails.builder.id])
      expect(URL.canParse(uri)).toBe(true);

    const bill = JSON.parse(bytesOf("usage-etl-9.8.7.cdx.json").toString());
    expect(bill.metadata.component.purl).toBe("pkg:npm/usage-etl@9.8.7");
    expect(bill.components.length).toBeGreaterThan(50);

    appendFileSync(tarball, "x");
    expect(check).toThrow(/usage-etl-9\.8\.7\.tgz: FAILED|did NOT match/);
  });

  test("writes the same bytes again", () => {
    const tarball = smallTarball();
    const write = () => writeReleaseFiles(tarball, build).map((file) => readFileSync(file, "utf8"));
    const first = write();
    expect(first).toHaveLength(3);
    expect(write()).toEqual(first);
  });
});

/** What is wrong with a workflow, by line where it is about one line. */
function problemsOf(text: string): string[] {
  const actions = text
    .split("\n")
    .flatMap((line) => /^\s*(?:- )?uses:\s*(.*)$/.exec(line)?.[1] ?? [])
    .filter((action) => !/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))
    .map((action) => `not named by its commit and version: ${action}`);
  const secrets = [...text.matchAll(/\$\{\{\s*secrets\.\w+/g)].map(([secret]) => `a secret: ${secret}`);
  const { permissions, jobs } = parse(text) as {
    permissions?: object;
    jobs: Record<string, { permissions?: object; steps: { run?: string; with?: object; uses?: string }[] }>;
  };
  const all = permissions === undefined ? ["a job without its own permissions has all of them"] : [];
  const rights = Object.entries(jobs).flatMap(([name, job]) => {
    const mayWrite = Object.values(job.permissions ?? {}).includes("write");
    const runs = job.steps.map(({ run = "" }) => run);
    return [
      ...(job.permissions === undefined ? [`${name}: no permissions`] : []),
      ...(mayWrite && runs.some((run) => /\bnpm (ci|install|test|run|exec)\b|\bnpx\b/.test(run))
        ? [`${name}: may write, and runs packages`]
        : []),
      ...runs
        .filter((run) => /\bnpm (publish|pack)\b.*\.tgz/.test(run) && !run.includes("--ignore-scripts"))
        .map(() => `${name}: publishes with scripts`),
      ...job.steps
        .filter(({ uses, with: given }) => uses?.startsWith("actions/checkout@") && given === undefined)
        .map(() => `${name}: leaves its token in the checkout`),
    ];
  });
  return [...actions, ...secrets, ...all, ...rights];
}

describe("workflows", () => {
  const release = readFileSync(join(ROOT, ".github/workflows/release.yml"), "utf8");

  test("the release has pinned actions, no secrets, and no rights where packages run", () => {
    expect(problemsOf(release)).toEqual([]);
    expect(parse(release).jobs.build.steps.map(({ run }: { run?: string }) => run)).toContain(
      "npm ci --ignore-scripts",
    );
  });

  test("the actions of every workflow and example are pinned", () => {
    const files = globSync([".github/workflows/*.{yml,yaml}", "docs/examples/*.yml"], { cwd: ROOT });
    expect(files).toHaveLength(2);
    for (const file of files)
      expect(
        problemsOf(readFileSync(join(ROOT, file), "utf8")).filter((problem) => problem.startsWith("not ")),
        file,
      ).toEqual([]);
  });

  test.each([
    [/checkout@\w{40} # v6\.0\.2/, "checkout@v6", "not named by its commit and version: actions/checkout@v6"],
    [/(checkout@\w{39})\w/, "$1", "not named by its commit and version"],
    [/(checkout@\w{40}) # v6\.0\.2/, "$1", "not named by its commit and version"],
    [/\$\{\{ github\.token/, "$${{ secrets.NPM_TOKEN", "a secret"],
    [/^permissions: \{\}\n/m, "", "a job without its own permissions"],
    [/permissions: \{ contents: read \}/, "permissions: { contents: write }", "test: may write"],
    [/--ignore-scripts --access/, "--access", "publish: publishes with scripts"],
    [/ {8}with: \{ persist-credentials: false \}\n/, "", "test: leaves its token"],
  ])("a planted fault is found: %s", (from, to, expected) => {
    const planted = release.replace(from, to);
    expect(planted).not.toBe(release);
    expect(problemsOf(planted).join("\n")).toContain(expected);
  });
});

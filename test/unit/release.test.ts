import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
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

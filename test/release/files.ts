import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { ROOT } from "./lock.ts";
import { billOfMaterials } from "./sbom.ts";

/**
 * `npm run release:files -- TARBALL [REPOSITORY]`: writes what a release publishes beside its tarball: the bill of materials, a
 * statement of where the tarball comes from (in-toto, unsigned) and SHA256SUMS. First it packs the commit again and compares, so that
 * the statement is true. REPOSITORY is an address such as https://github.com/OWNER/NAME; the workflow brings it. No network is needed.
 */

interface Build {
  /** Where the commit can be fetched. */
  readonly repository: string;
  readonly commit: string;
  /** Who built it: the workflow, or a page that says how it is done by hand. */
  readonly builder: string;
  /** The page of the run, if a workflow built it. */
  readonly run?: string | undefined;
  /** The same sources give the same bytes with these. */
  readonly tools: { readonly node: string; readonly npm: string };
}

if (import.meta.main) {
  const [given, address = repositoryOfWorkflow()] = process.argv.slice(2);
  if (given === undefined || !/^https:\/\/\S+$/.test(address ?? "")) {
    process.stderr.write("Say which: npm run release:files -- TARBALL https://github.com/OWNER/NAME\n");
    process.exit(2);
  }
  const tarball = resolve(given);
  const reproduce = join(ROOT, "test/release/reproduce.ts");
  const { status } = spawnSync(process.execPath, [reproduce, tarball], { stdio: "inherit" });
  if (status !== 0) process.exit(1);
  for (const file of writeReleaseFiles(tarball, buildOf(address as string)))
    process.stdout.write(`${file}\n`);
}

/** Writes the files and returns their paths, in the order in which they are made. Same input, same bytes. */
export function writeReleaseFiles(tarball: string, build: Build): string[] {
  const folder = dirname(tarball);
  const fromTarball = (path: string) =>
    JSON.parse(execFileSync("tar", ["xzOf", tarball, `package/${path}`], { encoding: "utf8" }));
  const manifest = fromTarball("package.json");
  const name = `${manifest.name}-${manifest.version}`;
  const bill = join(folder, `${name}.cdx.json`);
  writeFileSync(bill, billOfMaterials(manifest, fromTarball("npm-shrinkwrap.json")));
  const statement = join(folder, `${name}.intoto.json`);
  const subject = [tarball, bill].map((file) => ({ name: basename(file), digest: { sha256: sumOf(file) } }));
  writeFileSync(statement, `${JSON.stringify(statementOf(subject, manifest.version, build), null, 2)}\n`);
  const sums = join(folder, "SHA256SUMS");
  const lines = [tarball, bill, statement].map((file) => `${sumOf(file)}  ${basename(file)}\n`);
  writeFileSync(sums, lines.join(""));
  return [bill, statement, sums];
}

/** in-toto Statement v1 with SLSA provenance v1. Without times, so that whoever builds it again gets the same. */
function statementOf(subject: readonly object[], version: string, build: Build) {
  const { repository, commit, builder, run, tools } = build;
  const ref = `refs/tags/v${version}`;
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject,
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: howTo(repository, commit),
        externalParameters: { repository, ref },
        internalParameters: tools,
        resolvedDependencies: [{ uri: `git+${repository}@${ref}`, digest: { gitCommit: commit } }],
      },
      runDetails: {
        builder: { id: builder },
        ...(run === undefined ? {} : { metadata: { invocationId: run } }),
      },
    },
  };
}

function buildOf(repository: string): Build {
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT, encoding: "utf8" }).trim();
  const npm = execFileSync("npm", ["--version"], { encoding: "utf8" }).trim();
  const { GITHUB_SERVER_URL, GITHUB_WORKFLOW_REF, GITHUB_RUN_ID, GITHUB_RUN_ATTEMPT } = process.env;
  return {
    repository,
    commit,
    builder:
      GITHUB_WORKFLOW_REF === undefined
        ? howTo(repository, commit)
        : `${GITHUB_SERVER_URL}/${GITHUB_WORKFLOW_REF}`,
    run:
      GITHUB_RUN_ID === undefined
        ? undefined
        : `${repository}/actions/runs/${GITHUB_RUN_ID}/attempts/${GITHUB_RUN_ATTEMPT}`,
    tools: { node: process.versions.node, npm },
  };
}

function howTo(repository: string, commit: string): string {
  return `${repository}/blob/${commit}/RELEASING.md#what-a-release-publishes`;
}

function repositoryOfWorkflow(): string | undefined {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
  return GITHUB_REPOSITORY === undefined ? undefined : `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;
}

function sumOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseAllDocuments } from "yaml";
import { aptInstall } from "../../src/local/servers/local-redis.ts";

/**
 * Renders the kustomization of docs/deploy with kubectl, and checks every object against the schemas of the Kubernetes API and of
 * KEDA: `npm run kubernetes:check`.
 */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FOLDER = "docs/deploy/kubernetes";
/** Validators that were compiled from the published schemas: 26 MB, so not a dependency. */
const MODELS = ["kubernetes-models@5.1.0", "@kubernetes-models/keda@2.0.0"];

await main();

async function main(): Promise<void> {
  if (spawnSync("kubectl", ["version", "--client"]).status !== 0) {
    await aptInstall(["kubernetes-client"], process.env);
  }
  // With the autoscaler and without it.
  const objects = [render("autoscale"), render("service")].flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as Manifest),
  );
  const models = installModels();
  const problems: string[] = [];
  for (const one of objects) problems.push(...(await problemsOf(one, models)));
  problems.push(...unknownFields(objects, models));
  if (problems.length > 0) throw new Error(problems.join("\n"));
  console.log(`${objects.length} objects are as the schemas say.`);
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

type Model = new (manifest: Manifest) => { validate(): void };

function render(folder: string): string {
  return execFileSync("kubectl", ["kustomize", join(ROOT, FOLDER, folder)], { encoding: "utf8" });
}

function installModels(): string {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-kubernetes-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  execFileSync("npm", ["install", "--prefix", folder, "--no-save", ...MODELS], { stdio: "ignore" });
  return join(folder, "node_modules");
}

async function problemsOf(manifest: Manifest, models: string): Promise<string[]> {
  const { apiVersion, kind, metadata } = manifest;
  const path = pathToFileURL(join(models, folderOf(manifest), `${kind}.js`)).href;
  const { [kind]: Model } = (await import(path)) as Record<string, Model>;
  if (Model === undefined) return [`${apiVersion} has no ${kind}`];
  try {
    new Model(manifest).validate();
    return [];
  } catch (error) {
    return [`${kind} ${metadata.name}: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** The validators take fields that no schema has. TypeScript refuses them in the literal of an object. */
function unknownFields(objects: readonly Manifest[], models: string): string[] {
  const file = join(models, "objects.ts");
  const lines = objects.flatMap((manifest, at) => [
    `import type { I${manifest.kind} as Kind${at} } from "${folderOf(manifest)}/${manifest.kind}";`,
    `export const object${at}: Kind${at} = ${JSON.stringify(manifest, null, 1)};`,
  ]);
  writeFileSync(file, lines.join("\n"));
  const flags = ["--noEmit", "--skipLibCheck", "--module", "nodenext", "--types", "", "--ignoreConfig"];
  const { status, stdout } = spawnSync("tsc", [...flags, file], { cwd: models, encoding: "utf8" });
  return status === 0 ? [] : stdout.trim().split("\n");
}

function folderOf({ apiVersion }: Manifest): string {
  return `${apiVersion.startsWith("keda.sh/") ? "@kubernetes-models/keda" : "kubernetes-models"}/${apiVersion}`;
}

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { productionLock, ROOT } from "./lock.ts";

/** Prints the software bill of materials (CycloneDX) of what the package and the image bring: `npm run -s sbom`. */

const work = mkdtempSync(join(tmpdir(), "usage-etl-sbom-"));
// npm names the bill after the folder. From the lock of the clone it would leave out what development needs too.
const folder = join(work, "usage-etl");
try {
  mkdirSync(folder);
  const { devDependencies: _, ...manifest } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(productionLock()));
  const flags = ["--package-lock-only", "--sbom-format", "cyclonedx", "--sbom-type", "application"];
  execFileSync("npm", ["sbom", ...flags], { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
} finally {
  rmSync(work, { recursive: true });
}

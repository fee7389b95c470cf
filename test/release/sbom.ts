import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { productionLock, ROOT } from "./lock.ts";

/** Prints the software bill of materials (CycloneDX) of what the package and the image bring: `npm run -s sbom`. */

if (import.meta.main) {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  process.stdout.write(billOfMaterials(manifest, productionLock()));
}

/** Same input, same bytes: npm's number and time of each run are left out, which CycloneDX allows. */
export function billOfMaterials(packageJson: object, lock: object): string {
  const work = mkdtempSync(join(tmpdir(), "usage-etl-sbom-"));
  // npm names the bill after the folder. From the lock of the clone it would leave out what development needs too.
  const folder = join(work, "usage-etl");
  try {
    mkdirSync(folder);
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({ ...packageJson, devDependencies: undefined }),
    );
    writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
    const flags = ["--package-lock-only", "--sbom-format", "cyclonedx", "--sbom-type", "application"];
    const bill = JSON.parse(execFileSync("npm", ["sbom", ...flags], { cwd: folder, encoding: "utf8" }));
    delete bill.serialNumber;
    delete bill.metadata.timestamp;
    return `${JSON.stringify(bill, null, 2)}\n`;
  } finally {
    rmSync(work, { recursive: true });
  }
}

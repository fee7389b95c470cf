import { appendFileSync, cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export function copyRelease(): string {
  const release = mkdtempSync(join(tmpdir(), "usage-etl-release-"));
  onTestFinished(() => rmSync(release, { recursive: true, force: true }));
  for (const part of ["src", "jobs", "sql", "package.json"]) {
    cpSync(join(ROOT, part), join(release, part), { recursive: true, verbatimSymlinks: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(release, "node_modules"));
  return release;
}

export function nextRelease(next: { migration: string; sql: string; views: string }): string {
  const release = copyRelease();
  writeFileSync(join(release, `sql/migrations/${next.migration}.sql`), next.sql);
  appendFileSync(join(release, "sql/reporting/95_grants.sql"), next.views);
  return release;
}

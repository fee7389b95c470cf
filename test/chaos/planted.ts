import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Known bugs. Chaos that does not find them proves nothing. */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

interface PlantedBug {
  readonly name: string;
  readonly file: string;
  /** Each text occurs once in the file. */
  readonly edits: readonly (readonly [find: string, replace: string])[];
  /** What to run: a fault that shows it, or random faults. */
  readonly environment: Readonly<Record<string, string>>;
}

const LOAD = "src/store/load/load.ts";

export const PLANTED: readonly PlantedBug[] = [
  {
    name: "an older answer may replace a newer one",
    file: LOAD,
    edits: [["row.fetch_number >= stamp.fetchNumber", "row.fetch_number === stamp.fetchNumber"]],
    environment: { CHAOS_ONLY: "older answers arrive late" },
  },
  {
    name: "loads do not lock their scopes",
    file: LOAD,
    edits: [["  await lockScopes(db, scopeIds);\n", "  void lockScopes;\n"]],
    environment: { CHAOS_ONLY: "the same windows on two workers" },
  },
  {
    name: "coverage is committed before its records",
    file: LOAD,
    edits: [
      [
        "  const table = recordTable(window.stride);\n",
        `  const before = overlapped.filter((row) => proven.includes(row.scope_id));
  const hasSettled = await replaceCoverage(db, whole, { proven, replaced: before });
  await client.query("COMMIT; BEGIN");
  const table = recordTable(window.stride);
`,
      ],
      ["  const hasSettled = await replaceCoverage(db, whole, { proven, replaced });\n", ""],
    ],
    environment: { CHAOS_ONLY: "kill -9 between COPY and COMMIT" },
  },
  {
    name: "a fetch task that was handed back counts as one that ended its worker",
    file: "src/pipeline/extract/work-slice.ts",
    edits: [["if (isHandedBack(error, signal))", "if (isHandedBack(error, signal) && !signal)"]],
    environment: { CHAOS_ONLY: "429 to everything" },
  },
];

/** A copy of the product with one bug. Returns its folder. */
export function plant({ name, file, edits }: PlantedBug): string {
  const release = mkdtempSync(join(tmpdir(), "usage-etl-planted-"));
  process.on("exit", () => rmSync(release, { recursive: true, force: true }));
  for (const part of ["src", "jobs", "sql", "package.json"]) {
    cpSync(join(ROOT, part), join(release, part), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(release, "node_modules"));
  const path = join(release, file);
  let text = readFileSync(path, "utf8");
  for (const [find, replace] of edits) {
    if (text.split(find).length !== 2)
      throw new Error(`${name}: ${file} has changed; correct test/chaos/planted.ts.`);
    text = text.replace(find, () => replace);
  }
  writeFileSync(path, text);
  return release;
}

import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Known bugs. Chaos that does not find them proves nothing. */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The text to find occurs once in the file. */
type Edit = readonly [find: string, replace: string];

interface PlantedBug {
  readonly name: string;
  readonly file: string;
  readonly edits: readonly Edit[];
  /** A limit made smaller, so that a short run reaches it. Without the bug, the run must pass with it. */
  readonly scale?: Edit;
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
    edits: [
      ["const locked = await lockScopes(db, scopeIds);", "void lockScopes;\n  const locked = scopeIds;"],
    ],
    environment: { CHAOS_ONLY: "the same windows on two workers" },
  },
  {
    name: "coverage is committed before its records",
    file: LOAD,
    edits: [
      [
        "  const isFirst = replaced.length === 0 && !hasWithdrawn;\n",
        `  const isFirst = replaced.length === 0 && !hasWithdrawn;
  await replaceCoverage(db, load, { scopeIds: proven, replaced, digests, epoch, isKnown: false });
  await transaction.client.query("COMMIT; BEGIN");
`,
      ],
      [
        "  await replaceCoverage(db, load, { scopeIds: proven, replaced, digests, epoch, isKnown });\n",
        "  void isKnown;\n",
      ],
    ],
    environment: { CHAOS_ONLY: "kill -9 between COPY and COMMIT" },
  },
  {
    name: "an answer without a workspace proves that it had no usage",
    file: "src/store/catalog/workspace-access.ts",
    edits: [
      [
        "new Set([...named, ...rows.map((row) => row.scope_id)])",
        "new Set([...named, ...rows.map((row) => row.scope_id), ...scopeIds])",
      ],
    ],
    environment: { CHAOS_ONLY: "the key loses a workspace" },
  },
  {
    name: "a fetch task that was handed back counts as one that ended its worker",
    file: "src/pipeline/extract/work-task.ts",
    edits: [["if (isHandedBack(error, signal))", "if (isHandedBack(error, signal) && !signal)"]],
    scale: ["const POISON_AFTER = 20;", "const POISON_AFTER = 1;"],
    environment: { CHAOS_ONLY: "429 to everything" },
  },
  {
    name: "a message to the receiver of alerts has no limit",
    file: "src/pipeline/alerts/deliver.ts",
    edits: [
      [
        "const ends = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);",
        "const ends = signal ?? new AbortController().signal;",
      ],
    ],
    environment: { CHAOS_ONLY: "receiver of alerts" },
  },
];

/** A copy of the product with one bug, or with only its smaller limit. Returns its folder. */
export function plant({ name, file, edits, scale }: PlantedBug, hasBug = true): string {
  const release = mkdtempSync(join(tmpdir(), "usage-etl-planted-"));
  process.on("exit", () => rmSync(release, { recursive: true, force: true }));
  for (const part of ["src", "jobs", "sql", "package.json"]) {
    cpSync(join(ROOT, part), join(release, part), { recursive: true, verbatimSymlinks: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(release, "node_modules"));
  const path = join(release, file);
  let text = readFileSync(path, "utf8");
  for (const [find, replace] of [...(hasBug ? edits : []), ...(scale === undefined ? [] : [scale])]) {
    if (text.split(find).length !== 2)
      throw new Error(`${name}: ${file} has changed; correct test/chaos/planted.ts.`);
    text = text.replace(find, () => replace);
  }
  writeFileSync(path, text);
  return release;
}

import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { table } from "../../src/cli/report/output.ts";
import { openDatabases, query, runChild, whole, wholes } from "./harness.ts";
import type { WriteFiles, Written } from "./measured.ts";
import { NODE_OPTIONS } from "./processes.ts";

/**
 * `npm run bench:files`: the files of one view with many rows, written to a folder: all of them, then again when nothing has changed,
 * then when one day has. Everything shares the cores of this machine.
 */

const VIEW = "fct_usage_user_daily";
const WORKSPACES = 10;
const options = new Command("bench:files")
  .option("--rows <n>", "rows of the view", whole, 5_000_000)
  .option("--of-day <n...>", "rows of a day, for each measurement", wholes)
  // As the program starts.
  .option("--node-option <option...>", "for the measured process", [...NODE_OPTIONS])
  .parse()
  .opts<{ rows: number; ofDay?: number[]; nodeOption: string[] }>();

const databases = await openDatabases();
try {
  const lines: (string | number)[][] = [];
  for (const ofDay of options.ofDay ?? [10_000, 100_000]) lines.push(...(await measure(ofDay)));
  process.stdout.write(
    `${table(["rows a day", "writing", "rows", "files", "written", "MB", "s", "CPU s", "idle MB", "peak MB"], lines)}\n\n` +
      `${VIEW}. Node ${process.version}, ${databases.version} (${databases.settings}), ${availableParallelism()} cores shared by all.\n`,
  );
} finally {
  await databases.close();
}

async function measure(ofDay: number): Promise<(string | number)[][]> {
  const days = Math.ceil(options.rows / ofDay);
  const databaseUrl = await databases.create(seedOf({ days, users: Math.ceil(ofDay / WORKSPACES) }));
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-bench-"));
  try {
    await databases.settle(databaseUrl);
    const write = async (writing: string) => {
      const task: WriteFiles = { what: "files", databaseUrl, folder, views: [VIEW] };
      const a = await runChild<Written>("./measured.ts", task, options.nodeOption);
      return [
        ofDay,
        writing,
        a.rows,
        a.files,
        a.written,
        (a.bytes / 1e6).toFixed(1),
        ...[a.ms / 1000, a.cpuMs / 1000, a.idleMb, a.peakMb].map((value) => value.toFixed(0)),
      ];
    };
    const lines = [await write("all"), await write("nothing changed")];
    await query(
      databaseUrl,
      "UPDATE usage.dated_record SET traces = traces + 1 WHERE bucket_start = (SELECT min(bucket_start) FROM usage.dated_record)",
    );
    return [...lines, await write("a day changed")];
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await databases.drop(databaseUrl);
  }
}

/** A source whose users have traces in every workspace on every day, all loaded and final. */
function seedOf({ days, users }: { days: number; users: number }): string {
  return `
    SET TIME ZONE 'UTC';
    INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    VALUES ('default', 'http://localhost', current_date - ${days}, 744, '');
    INSERT INTO usage.entity (source_id, dimension, external_id, first_seen_at, last_seen_at)
    SELECT source_id, d.name, md5(d.name || n)::uuid::text, data_start, now()
    FROM usage.source, (VALUES ('workspace', ${WORKSPACES}), ('user', ${users})) d (name, number), generate_series(1, d.number) n;
    INSERT INTO usage.entity_name (entity_id, name, first_bucket, last_bucket, fetch_number)
    SELECT entity_id, dimension || entity_id || '@example.com', first_seen_at, last_seen_at, 1 FROM usage.entity;
    INSERT INTO usage.workspace (entity_id, readable_at) SELECT entity_id, now() FROM usage.entity WHERE dimension = 'workspace';
    INSERT INTO usage.scope (source_id, group_by, workspace_id, stride)
    SELECT source_id, 'user', entity_id, 'day' FROM usage.workspace JOIN usage.entity USING (entity_id);
    INSERT INTO usage.series (scope_id, entity_id)
    SELECT scope_id, e.entity_id FROM usage.trace_scope, usage.entity e WHERE e.dimension = 'user';
    INSERT INTO usage.coverage
    SELECT scope_id, data_start, current_date, true, nextval('usage.fetch_number'), now(),
      tstzmultirange(tstzrange(data_start, current_date)) FROM usage.trace_scope JOIN usage.source USING (source_id);
    INSERT INTO usage.became_final
    SELECT scope_id, data_start, current_date, now() FROM usage.trace_scope JOIN usage.source USING (source_id);
    INSERT INTO usage.dated_record
    SELECT series_id, d::date, 1 + hashint8(series_id::bigint * 100000 + extract(epoch FROM d)::bigint / 86400) & 1023
    FROM usage.source, generate_series(data_start, current_date - 1, interval '1 day') d, usage.series ORDER BY 2, 1`;
}

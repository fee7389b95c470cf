import { readdir, readlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { openStore } from "../../src/core/store/db/database.ts";
import { listViews } from "../../src/core/store/db/views.ts";
import { type Engine, viewsFor } from "../../src/features/export/engine-views.ts";
import type { Manifest } from "../../src/features/export/manifest.ts";
import type { Place } from "../../src/features/export/place.ts";
import { connectPlain } from "../support/reporting.ts";
import { inSchema } from "../support/views.ts";

/** Rows as texts, null as null, in an order of their own. */
type Rows = (string | null)[][];

interface Files {
  readonly folder: string;
  readonly manifest: Manifest;
}

type Run = (query: string) => Promise<{ columns: string[]; rows: Rows }>;

/** Asks DuckDB what the files in a folder hold, through the views that `files views duckdb` makes. */
export async function withDuckDb<T>(
  url: string,
  files: Files,
  request: (run: Run) => Promise<T>,
): Promise<T> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    await connection.run(await scriptFor("duckdb", url, files));
    return await request(async (query) => {
      const result = await connection.runAndReadAll(query);
      const rows = result.getRows().map((row) => row.map((value) => (value === null ? null : String(value))));
      return { columns: result.columnNames(), rows };
    });
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function scriptFor(engine: Engine, url: string, { folder, manifest }: Files): Promise<string> {
  const store = openStore({ url });
  try {
    return viewsFor(engine, { address: folder, manifests: [manifest], views: await listViews(store.db) });
  } finally {
    await store.close();
  }
}

/** The same of ClickHouse. */
export async function withClickHouse<T>(
  clickHouse: ClickHouse,
  url: string,
  files: Files,
  request: (run: Run) => Promise<T>,
): Promise<T> {
  await fillClickHouse(clickHouse, await scriptFor("clickhouse", url, files));
  return request(async (query) => {
    const response = await clickHouse.queryAsync(query, { format: "JSONCompact" });
    const { meta, data } = JSON.parse(response.text()) as { meta: { name: string }[]; data: unknown[][] };
    const rows = data.map((row) => row.map((value) => (value === null ? null : String(value))));
    return { columns: meta.map(({ name }) => name), rows };
  });
}

/** Runs what `files views clickhouse` makes, and waits until all views have their rows. */
export async function fillClickHouse(clickHouse: ClickHouse, script: string): Promise<void> {
  for (const statement of script.split(/;\n/).filter((text) => text.trim() !== ""))
    await clickHouse.queryAsync(statement);
  for (const [, view] of script.matchAll(/MATERIALIZED VIEW (\S+)/g))
    await clickHouse.queryAsync(`SYSTEM WAIT VIEW ${view}`);
}

interface ClickHouse {
  queryAsync(sql: string, options?: { format: string }): Promise<{ text(): string }>;
  cleanup(): void;
}

/** ClickHouse in this process; undefined where CHDB_MODULE does not name npm's `chdb`, which has half a gigabyte. */
export function startClickHouse(): ClickHouse | undefined {
  const module = process.env.CHDB_MODULE;
  return module === undefined ? undefined : new (createRequire(import.meta.url)(module).Session)();
}

/** Every dataset of a manifest, as DuckDB reads it. */
export function readWithDuckDb(url: string, folder: string, manifest: Manifest): Promise<Map<string, Rows>> {
  return withDuckDb(url, { folder, manifest }, async (run) => {
    const found = new Map<string, Rows>();
    for (const [name, { columns, partitioned_by }] of Object.entries(manifest.datasets)) {
      const wanted = [...partitioned_by, ...columns.map((column) => `"${column.name}"`)];
      const query = `SELECT ${wanted.map((column) => `${column}::VARCHAR`).join(", ")} FROM ${inSchema(name)}`;
      found.set(name, sorted((await run(query)).rows));
    }
    return found;
  });
}

/** The same datasets as the views show them now. */
export async function readViews(url: string, manifest: Manifest): Promise<Map<string, Rows>> {
  const client = await connectPlain(url);
  const found = new Map<string, Rows>();
  for (const [name, { columns, partitioned_by }] of Object.entries(manifest.datasets)) {
    const wanted = [...partitioned_by, ...columns.map((column) => column.name)];
    const { rows } = await client.query<(string | null)[]>({
      text: `SELECT ${wanted.map((column) => `"${column}"::text`).join(", ")} FROM ${inSchema(name)} WHERE source_id = $1`,
      values: [manifest.source_id],
      rowMode: "array",
    });
    found.set(name, sorted(rows));
  }
  return found;
}

function sorted(rows: Rows): Rows {
  const keyed = rows.map((row) => [JSON.stringify(row), row] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row);
}

/** Files below a folder that this process holds open. Linux alone says so. */
export async function openFilesOf(folder: string): Promise<string[]> {
  if (process.platform !== "linux") return [];
  const links = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
  return (await Promise.all(links)).filter((path) => path.startsWith(`${folder}/`));
}

/** A place whose process is killed before its `at`th change: nothing after it happens. It is the folder that has this address. */
export function killedBefore(place: Place, at: number): Place {
  let changes = 0;
  const live = () => {
    if (++changes > at) throw new Error("killed");
  };
  return {
    ...place,
    async create(name) {
      live();
      const file = await place.create(name);
      return {
        async write(chunk) {
          live();
          await file.write(chunk);
        },
        async commit() {
          live();
          await file.commit();
        },
        // Linux closes the file of a killed process. Nobody deletes it.
        async abandon() {
          await file.abandon();
          await writeFile(`${join(place.address, name)}.0badc0de.part`, "cut");
        },
      };
    },
    async remove(name) {
      live();
      await place.remove(name);
    },
  };
}

/** A place where something happens right before the manifest is created, or when it has been written but is not in its place. */
export function atManifest(place: Place, moment: "create" | "write", happen: () => Promise<void>): Place {
  return {
    ...place,
    async create(name) {
      const isManifest = name.startsWith("manifest/");
      if (isManifest && moment === "create") await happen();
      const file = await place.create(name);
      return {
        ...file,
        async write(chunk) {
          await file.write(chunk);
          if (isManifest && moment === "write") await happen();
        },
      };
    },
  };
}

/** Ends the connection of the process that writes files of a database, and with it its lock. */
export async function endWriter(url: string): Promise<void> {
  const client = await connectPlain(url);
  const { rows } = await client.query<{ ended: string }>(
    `SELECT pg_terminate_backend(pid, 10000) AS ended FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'usage-etl export'`,
  );
  if (rows.length !== 1 || rows[0]?.ended !== "t") throw new Error(`${rows.length} writers, not 1`);
}

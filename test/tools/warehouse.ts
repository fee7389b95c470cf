import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { DuckDBInstance } from "@duckdb/node-api";
import { openStore } from "../../src/core/store/db/database.ts";
import { listViews } from "../../src/core/store/db/views.ts";
import { viewsFor } from "../../src/features/export/engine-views.ts";
import type { Manifest } from "../../src/features/export/manifest.ts";
import type { Place } from "../../src/features/export/place.ts";
import { connectPlain } from "../support/reporting.ts";
import { skipThis } from "../support/services.ts";
import { inSchema } from "../support/views.ts";
import { notInstalled, venvOf } from "./counterparts.ts";

export type Rows = (string | null)[][];

interface Files {
  readonly folder: string;
  readonly manifest: Manifest;
}

export type Run = (query: string) => Promise<{ columns: string[]; rows: Rows }>;

export interface Engine<L extends string = keyof typeof ENGINE_VIEWS> {
  readonly name: string;
  readonly language: L;
  open(): Promise<{ run: Run; close(): Promise<void> }>;
}

/** DuckDB of npm, which is the older version, and what `npm run tools` installs from PyPI. */
const OLDER_DUCKDB: Engine = { name: "DuckDB 1.5", language: "duckdb", open: openDuckDb };
const NEWEST_DUCKDB: Engine = inPython("DuckDB 2", "duckdb");
export const CLICKHOUSE: Engine = inPython("ClickHouse", "clickhouse");
export const DUCKDBS = [OLDER_DUCKDB, NEWEST_DUCKDB];
export const ALL_ENGINES = [...DUCKDBS, CLICKHOUSE];

export const DATA_FRAMES = [inPython("pyarrow", "arrow"), inPython("polars", "polars")];

const ENGINE_VIEWS = {
  duckdb: {
    create: async (run: Run, script: string) => void (await run(script)),
    // As DuckDB itself writes values, so that all of its versions and clients write the same.
    read: (query: string) => `SELECT COLUMNS(*)::VARCHAR FROM (${query})`,
  },
  clickhouse: { create: fillClickHouse, read: (query: string) => query },
};

async function openDuckDb() {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  return {
    run: async (query: string) => {
      const result = await connection.runAndReadAll(query);
      return { columns: result.columnNames(), rows: texts(result.getRows()) };
    },
    close: async () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

function inPython<L extends string>(name: string, language: L): Engine<L> {
  return {
    name,
    language,
    async open() {
      const reason = notInstalled("engines");
      if (reason !== undefined) skipThis(reason);
      const script = fileURLToPath(new URL("engine.py", import.meta.url));
      const child = spawn(join(venvOf("engines"), "bin/python"), [script, language], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      const ended = once(child, "close");
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      return {
        async run(sql: string) {
          child.stdin.write(`${JSON.stringify({ sql })}\n`);
          const { done, value } = await lines.next();
          if (done) throw new Error(`${name} ended`);
          const { error, columns, rows } = JSON.parse(value);
          if (error !== undefined) throw new Error(`${name}: ${error}\n${sql}`);
          return { columns, rows: texts(rows) };
        },
        async close() {
          child.stdin.end();
          await ended;
        },
      };
    },
  };
}

const texts = (rows: readonly (readonly unknown[])[]): Rows =>
  rows.map((row) => row.map((value) => (value === null ? null : String(value))));

export async function withEngine<T>(
  { language, open }: Engine,
  url: string,
  files: Files,
  request: (run: Run) => Promise<T>,
): Promise<T> {
  const { run, close } = await open();
  const { create, read } = ENGINE_VIEWS[language];
  try {
    await create(run, await scriptFor(language, url, files));
    return await request((query) => run(read(query)));
  } finally {
    await close();
  }
}

async function scriptFor(
  engine: Engine["language"],
  url: string,
  { folder, manifest }: Files,
): Promise<string> {
  const store = openStore({ url });
  try {
    return viewsFor(engine, { address: folder, manifests: [manifest], views: await listViews(store.db) });
  } finally {
    await store.close();
  }
}

/** Runs what `files views clickhouse` makes, and waits until all views have their rows. */
export async function fillClickHouse(run: Run, script: string): Promise<void> {
  for (const statement of script.split(/;\n/).filter((text) => text.trim() !== "")) await run(statement);
  for (const [, view] of script.matchAll(/MATERIALIZED VIEW (\S+)/g)) await run(`SYSTEM WAIT VIEW ${view}`);
}

export function readWithDuckDb(url: string, folder: string, manifest: Manifest): Promise<Map<string, Rows>> {
  return withEngine(OLDER_DUCKDB, url, { folder, manifest }, async (run) => {
    const found = new Map<string, Rows>();
    for (const [name, { columns }] of Object.entries(manifest.datasets)) {
      const wanted = columns.map((column) => `"${column.name}"`);
      const query = `SELECT ${wanted.map((column) => `${column}::VARCHAR`).join(", ")} FROM ${inSchema(name)}`;
      found.set(name, sorted((await run(query)).rows));
    }
    return found;
  });
}

export async function readViews(url: string, manifest: Manifest): Promise<Map<string, Rows>> {
  const client = await connectPlain(url);
  const found = new Map<string, Rows>();
  for (const [name, { columns }] of Object.entries(manifest.datasets)) {
    const wanted = columns.map((column) => column.name);
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

export async function endWriter(url: string): Promise<void> {
  const client = await connectPlain(url);
  const { rows } = await client.query<{ ended: string }>(
    `SELECT pg_terminate_backend(pid, 10000) AS ended FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'usage-etl export'`,
  );
  if (rows.length !== 1 || rows[0]?.ended !== "t") throw new Error(`${rows.length} writers, not 1`);
}

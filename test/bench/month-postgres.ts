import { chmodSync, closeSync, mkdtempSync, openSync, realpathSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { table } from "../../src/cli/report/output.ts";
import { resolvePostgres } from "../../src/local/servers/resolve.ts";
import { buildClock } from "../support/clock-library.ts";
import { query } from "./harness.ts";

/** A Postgres of its own, with autovacuum, whose clock is moved while it runs. It needs Linux and a C compiler. */
export interface MovedPostgres {
  readonly url: string;
  /** Moves its clock on to that time (epoch milliseconds), from which it runs as usual. */
  move(to: number): void;
  /** Of Postgres. */
  now(): number;
  /** Stops it, and removes its data. */
  close(): Promise<void>;
}

export async function startMovedPostgres(
  from: number,
  settings: Readonly<Record<string, string>>,
): Promise<MovedPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-bench-month-"));
  // Postgres runs as another user.
  chmodSync(folder, 0o755);
  const library = buildClock(folder);
  if (library === undefined) throw new Error("The clock cannot be compiled: install a C compiler (`cc`).");
  const path = join(folder, "offset");
  const file = openSync(path, "w", 0o644);
  let seconds = 0;
  const move = (to: number) => {
    seconds = Math.round((to - Date.now()) / 1000);
    const bytes = new BigInt64Array([BigInt(seconds)]);
    writeSync(file, new Uint8Array(bytes.buffer), 0, 8, 0);
  };
  move(from);
  // The server takes them over when it starts. The clock of this process stays as it is.
  Object.assign(process.env, { LD_PRELOAD: library, CLOCK_OFFSET: path });
  // In a kept folder it has the settings of an installation: those of temporary servers switch autovacuum off.
  const service = await resolvePostgres({ dataDir: folder, env: { PATH: process.env.PATH } });
  delete process.env.LD_PRELOAD;
  delete process.env.CLOCK_OFFSET;
  const admin = new pg.Client({ connectionString: service.url });
  await admin.connect();
  for (const [name, value] of Object.entries(settings))
    await admin.query(`ALTER SYSTEM SET ${name} = '${value}'`);
  await admin.query("SELECT pg_reload_conf()");
  await admin.end();
  return {
    url: service.url,
    move,
    now: () => Date.now() + seconds * 1000,
    async close() {
      await service.close();
      closeSync(file);
      // It is a link where the server's user cannot enter the folder.
      rmSync(realpathSync(join(folder, "postgres", "data")), { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Bytes by name: of each table, its values kept apart (toast), and each index; of Postgres's catalogue as a whole. */
export type Sizes = ReadonlyMap<string, number>;

export interface TableState {
  readonly live: number;
  readonly dead: number;
  readonly vacuums: number;
  readonly analyzes: number;
  /** Transactions since its oldest row was frozen. */
  readonly age: number;
}

/** Smaller ones are left out, unless they grew by as much. */
const SHOWN_BYTES = 150_000;

export async function sizesOf(url: string): Promise<Sizes> {
  const rows = await query(
    url,
    `SELECT relname AS name, pg_relation_size(oid) AS bytes
     FROM pg_class WHERE relnamespace = 'usage'::regnamespace AND relkind IN ('r', 'i', 'm')
     UNION ALL
     SELECT relname || ' (toast)', pg_total_relation_size(reltoastrelid)
     FROM pg_class WHERE relnamespace = 'usage'::regnamespace AND relkind = 'r' AND reltoastrelid <> 0
     UNION ALL
     SELECT 'pg_catalog', sum(pg_total_relation_size(oid))
     FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'`,
  );
  return new Map(rows.map(({ name = "", bytes }) => [name, Number(bytes)]));
}

export async function tablesOf(url: string): Promise<ReadonlyMap<string, TableState>> {
  const rows = await query(
    url,
    `SELECT coalesce(o.relname || ' (toast)', c.relname) AS name, n_live_tup AS live, n_dead_tup AS dead,
            autovacuum_count AS vacuums, autoanalyze_count AS analyzes, age(c.relfrozenxid) AS age
     FROM pg_stat_all_tables s JOIN pg_class c ON c.oid = s.relid LEFT JOIN pg_class o ON o.reltoastrelid = c.oid
     WHERE coalesce(o.relnamespace, c.relnamespace) = 'usage'::regnamespace`,
  );
  const numbers = ({ name: _, ...row }: Record<string, string>) =>
    Object.fromEntries(Object.entries(row).map(([key, value]) => [key, Number(value)]));
  return new Map(rows.map((row) => [row.name ?? "", numbers(row) as unknown as TableState]));
}

/** A database, and how large it is once it was written anew. */
interface State {
  readonly sizes: Sizes;
  readonly packed: Sizes;
  readonly tables: ReadonlyMap<string, TableState>;
}

interface Measured {
  readonly start: State;
  /** By the number of days. */
  readonly shown: ReadonlyMap<number, Sizes>;
  readonly end: State;
}

/** One line for each table, toast and index. `x` is the size over that of a copy that was written anew. */
export function describeSizes({ start, shown, end }: Measured): string {
  const days = [...shown];
  const head = ["MB", "start", "x", ...days.map(([day]) => `day ${day}`), "anew", "x"];
  const rows = [...end.sizes.keys()]
    .filter((name) => Math.max(of(end.sizes, name), of(start.sizes, name)) >= SHOWN_BYTES)
    .sort()
    .map((name) => {
      const [before, after] = [start.tables.get(name), end.tables.get(name)];
      const since = (key: "vacuums" | "analyzes") => after && after[key] - (before?.[key] ?? 0);
      return [
        ...[name, megabytes(of(start.sizes, name)), times(start, name)],
        ...days.map(([, sizes]) => megabytes(of(sizes, name))),
        ...[megabytes(of(end.packed, name)), times(end, name)],
        ...[after?.live, after?.dead, since("vacuums"), since("analyzes")].map((cell) => cell ?? ""),
      ];
    });
  return table([...head, "live rows", "dead", "vacuums", "analyzes"], rows);
}

function of(sizes: Sizes, name: string): number {
  return sizes.get(name) ?? 0;
}

function times({ sizes, packed }: State, name: string): string {
  const anew = of(packed, name);
  return anew === 0 ? "" : (of(sizes, name) / anew).toFixed(2);
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(bytes < 10e6 ? 2 : 0);
}

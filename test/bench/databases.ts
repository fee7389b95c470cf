import { randomBytes } from "node:crypto";
import pg from "pg";
import { resolvePostgres } from "../../src/local/servers/resolve.ts";
import { openStore } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";

/** Databases that hold the schema and nothing else, on one server. */
export interface Databases {
  readonly version: string;
  readonly settings: string;
  create(setup?: string): Promise<string>;
  /** Before each measurement, so that none pays for what another left to be written or cleaned. */
  settle(url: string): Promise<void>;
  /** What the table holds. */
  stored(url: string): Promise<{ records: number; traces: number }>;
  drop(url: string): Promise<void>;
  close(): Promise<void>;
}

export async function openDatabases(): Promise<Databases> {
  const service = await resolvePostgres();
  const prefix = `usage_etl_bench_${randomBytes(4).toString("hex")}`;
  const urlOf = (name: string) => Object.assign(new URL(service.url), { pathname: `/${name}` }).href;
  const template = `${prefix}_template`;
  const admin = new pg.Client({ connectionString: service.url });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${template}`);
  const store = openStore({ url: urlOf(template) });
  await migrate(store);
  await store.close();
  const { rows } = await admin.query(
    `SELECT version() AS version, current_setting('fsync') AS fsync, current_setting('shared_buffers') AS buffers`,
  );
  let created = 0;
  return {
    version: /^\S+ \S+/.exec(rows[0].version)?.[0] ?? "",
    settings: `${service.origin}, fsync ${rows[0].fsync}, shared_buffers ${rows[0].buffers}`,
    async create(setup) {
      const name = `${prefix}_${++created}`;
      await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
      if (setup !== undefined) await query(urlOf(name), setup);
      return urlOf(name);
    },
    async settle(url) {
      await query(url, "VACUUM (ANALYZE)");
      // A server that somebody named may not let us.
      if (service.origin !== "named") await admin.query("CHECKPOINT");
    },
    async stored(url) {
      const [row] = await query(
        url,
        "SELECT count(*)::text AS records, coalesce(sum(traces), 0)::text AS traces FROM usage.dated_record",
      );
      return { records: Number(row?.records), traces: Number(row?.traces) };
    },
    async drop(url) {
      await admin.query(`DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
    },
    async close() {
      if (service.origin === "named") {
        await admin.query(`DROP DATABASE ${template} WITH (FORCE)`);
      }
      await admin.end();
      await service.close();
    },
  };
}

/** Rows of one statement, in a session of its own. */
export async function query(url: string, text: string): Promise<Record<string, string>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

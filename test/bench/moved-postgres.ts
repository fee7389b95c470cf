import { chmodSync, closeSync, mkdtempSync, openSync, realpathSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { resolvePostgres } from "../../src/local/servers/resolve.ts";
import { buildClock } from "../support/clock-library.ts";

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

import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../../src/features/servers/start-server.ts";

export function hasPgBouncer(): boolean {
  return spawnSync("pgbouncer", ["--version"]).status === 0;
}

interface Pooler {
  through(url: string): string;
  close(): Promise<void>;
}

export async function startPgBouncer(url: string): Promise<Pooler> {
  const { hostname, port, username, password } = new URL(url);
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-pgbouncer-"));
  const own = await freePort();
  writeFileSync(
    join(folder, "users"),
    `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`,
  );
  writeFileSync(
    join(folder, "pgbouncer.ini"),
    `[databases]
* = host=${hostname} port=${port || 5432}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users")}
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 20
server_idle_timeout = 1
ignore_startup_parameters = options
logfile = ${join(folder, "log")}
`,
  );
  for (const name of ["", "users", "pgbouncer.ini"]) chmodSync(join(folder, name), 0o755);
  writeFileSync(join(folder, "log"), "");
  chmodSync(join(folder, "log"), 0o666);
  const asRoot = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const server = spawn("pgbouncer", ["-q", ...asRoot, join(folder, "pgbouncer.ini")], { stdio: "ignore" });
  const gone = new Promise<void>((ended) => server.once("exit", () => ended()));
  const through = (given: string) => {
    const changed = new URL(given);
    changed.host = `127.0.0.1:${own}`;
    return changed.href;
  };
  await untilItResponses(through(url));
  return {
    through,
    close: async () => {
      server.kill("SIGTERM");
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilItResponses(connectionString: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const client = new pg.Client({ connectionString });
    client.on("error", () => {});
    try {
      await client.connect();
      return;
    } catch (error) {
      if (attempt > 200) throw error;
      await new Promise((later) => setTimeout(later, 25));
    } finally {
      await client.end().catch(() => {});
    }
  }
}

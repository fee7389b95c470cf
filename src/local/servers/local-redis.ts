import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Home, keptHome, temporaryHome } from "./home.ts";
import { installRedis } from "./install-redis.ts";
import { pingRedis } from "./named.ts";
import { onPath } from "./on-path.ts";
import type { Service, StartInput } from "./service.ts";
import { clearLeftover, startServer } from "./start-server.ts";

/** A local Redis or Valkey from PATH. It is installed first if that is possible; else the result is undefined. */
export async function startLocalRedis(input: StartInput): Promise<Service | undefined> {
  const find = () => onPath(["redis-server", "valkey-server"], input.env);
  const program = find() ?? ((await installRedis(input)) ? find() : undefined);
  if (program === undefined) return undefined;
  const home =
    input.dataDir === undefined ? temporaryHome("redis", tmpdir()) : keptHome("redis", input.dataDir);
  try {
    const config = join(home.dir, "redis.conf");
    const pidFile = join(home.dir, "redis.pid");
    mkdirSync(join(home.dir, "data"), { recursive: true, mode: 0o700 });
    if (home.lastPort !== undefined) {
      // Redis puts its own name and address on its command line.
      const mark = `127.0.0.1:${home.lastPort}`;
      await clearLeftover({ name: "Redis", pidFile, mark, signal: "SIGTERM", say: input.say });
    }
    return await startServer({
      name: "Redis",
      home,
      signal: "TERM",
      command: (atPort) => {
        // In a file, because every local user can read the command line, and the settings hold the password.
        writeFileSync(config, configText(home, { port: atPort, pidFile }), { mode: 0o600 });
        return { program, args: [config] };
      },
      url: (atPort) => `redis://default:${home.password}@127.0.0.1:${atPort}`,
      ping: pingRedis,
    });
  } catch (error) {
    home.release();
    throw error;
  }
}

function configText(home: Home, { port, pidFile }: { port: number; pidFile: string }): string {
  const lines: readonly (readonly [string, string])[] = [
    ["bind", "127.0.0.1"],
    ["port", String(port)],
    ["requirepass", home.password],
    ["dir", join(home.dir, "data")],
    ["pidfile", pidFile],
    ["daemonize", "no"],
    ["save", ""],
    ["appendonly", home.temporary ? "no" : "yes"],
    // A Redis that evicts keys loses jobs: BullMQ warns, and `serve` refuses.
    ["maxmemory-policy", "noeviction"],
  ];
  return lines.map(([name, value]) => `${name} ${JSON.stringify(value)}\n`).join("");
}

import { readRedis } from "../../core/base/config.ts";
import { queryRedis } from "../../core/base/redis-connect.ts";
import { redisServerOf } from "../../core/base/redis-server.ts";
import { readSetting } from "../../core/base/variables.ts";
import { PASSWORD, startInDocker } from "./docker.ts";
import { aptInstall, mayAptInstall, onPath } from "./install.ts";
import { DEFAULTS, missing, type Service, type StartInput, startServer } from "./start-server.ts";

/** Errors: those of `queryRedis` for a server of the settings, else those of a local server. */
export async function resolveRedis(given: Partial<StartInput> = {}): Promise<Service> {
  const input = { ...DEFAULTS, ...given };
  const redis = readRedis(input.env);
  if (redis !== undefined) {
    await queryRedis(redis, (connection) => connection.ping());
    const url = readSetting(input.env, "REDIS_URL")?.reveal() ?? "";
    return { url, origin: "named", close: async () => {} };
  }
  const started = await startInDocker(input, {
    image: "redis:8",
    environment: {},
    command: ["redis-server", "--save", "", "--requirepass", PASSWORD],
    port: 6379,
    starts: 1,
    url: (address) => `redis://default:${PASSWORD}@${address}`,
  });
  return started ?? startLocalRedis(input);
}

/** Errors: `redis_install_failed`, `redis_unreachable`, `redis_start_failed`. */
export async function startLocalRedis(input: StartInput): Promise<Service> {
  const program = await redisProgram(input);
  return startServer({
    name: "Redis",
    signal: "TERM",
    at: ({ dir, port, password, secretFile }) => ({
      secrets: `bind 127.0.0.1\nport ${port}\nrequirepass ${password}\ndir "${dir}"\nsave ""\n`,
      command: [program, secretFile],
      url: `redis://default:${password}@127.0.0.1:${port}`,
    }),
    ping: pingRedis,
  });
}

export async function pingRedis(url: string): Promise<void> {
  await queryRedis(redisServerOf({ url }), (connection) => connection.ping());
}

/** Redis or Valkey from PATH, installed first if possible. */
export async function redisProgram(input: StartInput): Promise<string> {
  const find = () => onPath(["redis-server", "valkey-server"], input.env);
  if (find() === undefined) await installRedis(input);
  const program = find();
  const reason = "Docker does not respond, and neither redis-server nor valkey-server is on PATH.";
  if (program === undefined) throw missing("redis_unreachable", reason);
  return program;
}

async function installRedis({ env, say, mayInstall }: StartInput): Promise<void> {
  if (!mayAptInstall(env) || (await mayInstall?.("redis-server with apt-get")) === false) return;
  say("No Redis on PATH: installing redis-server with apt-get (its system service stays off).");
  await aptInstall(["redis-server"], env).catch((cause: Error) => {
    const reason = `none is on PATH, and apt-get could not install redis-server: ${cause.message}`;
    throw missing("redis_install_failed", reason, cause);
  });
}

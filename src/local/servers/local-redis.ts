import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { reasonOf, UnreachableError } from "../../errors.ts";
import { askRedis } from "../../redis-connect.ts";
import { redisServerOf } from "../../redis-server.ts";
import { type Service, type StartInput, startServer, temporaryHome } from "./start-server.ts";

/** Redis or Valkey from PATH, installed first if possible. Undefined if there is none. */
export async function startLocalRedis(input: StartInput): Promise<Service | undefined> {
  const find = () => onPath(["redis-server", "valkey-server"], input.env);
  const program = find() ?? ((await installRedis(input)) ? find() : undefined);
  if (program === undefined) return undefined;
  const home = temporaryHome("redis", tmpdir());
  const config = join(home.dir, "redis.conf");
  try {
    return await startServer({
      name: "Redis",
      home,
      signal: "TERM",
      command: (port) => {
        // Every local user can read the command line.
        const lines = [
          "bind 127.0.0.1",
          `port ${port}`,
          `requirepass ${home.password}`,
          `dir "${home.dir}"`,
          'save ""',
        ];
        writeFileSync(config, `${lines.join("\n")}\n`, { mode: 0o600 });
        return [program, config];
      },
      url: (port) => `redis://default:${home.password}@127.0.0.1:${port}`,
      ping: pingRedis,
    });
  } catch (error) {
    home.release();
    throw error;
  }
}

export async function pingRedis(url: string): Promise<void> {
  await askRedis(redisServerOf({ url }), (connection) => connection.ping());
}

/** Whether apt-get installed it. Error: `redis_install_failed`. */
async function installRedis({ env, say, mayInstall }: StartInput): Promise<boolean> {
  if (!mayAptInstall(env)) return false;
  if ((await mayInstall?.("redis-server with apt-get")) === false) return false;
  say("No Redis on PATH: installing redis-server with apt-get (its system service stays off).");
  try {
    await aptInstall(["redis-server"], env);
    return true;
  } catch (cause) {
    throw new UnreachableError({
      code: "redis_install_failed",
      message: `No Redis to use: REDIS_URL is not set, none is on PATH, and apt-get could not install redis-server: ${reasonOf(cause)}`,
      next: "Set REDIS_URL=redis://host:6379, or install redis-server or valkey-server yourself.",
      cause,
    });
  }
}

/** One installer runs at a time, and looks again at its turn. A policy keeps the package from starting its service. */
const INSTALL = `
set -e
exec 9>/var/lock/usage-etl-install; flock 9
if command -v "$1" >/dev/null; then exit 0; fi
apt-get update -q
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT; trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' >$policy; chmod 755 $policy
fi
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
if [ -d /run/systemd/system ]; then systemctl disable "$1" || true; fi
`;

/** True as root on Debian or Ubuntu. */
export function mayAptInstall(env: NodeJS.ProcessEnv): boolean {
  return (
    process.getuid?.() === 0 && existsSync("/etc/debian_version") && onPath(["apt-get"], env) !== undefined
  );
}

/** Does nothing if a program has the first package's name. The error's message is apt-get's output. */
export async function aptInstall(packages: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const options = { cwd: "/", env: { ...env, DEBIAN_FRONTEND: "noninteractive" }, timeout: 300_000 };
  try {
    await promisify(execFile)("/bin/sh", ["-c", INSTALL, "sh", ...packages], options);
  } catch (cause) {
    const { stderr = "" } = cause as { stderr?: string };
    throw new Error(stderr.trim() || String(cause), { cause });
  }
}

/** Path of the first of these programs in PATH. */
export function onPath(names: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

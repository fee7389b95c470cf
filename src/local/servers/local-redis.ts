import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { UnreachableError } from "../../errors.ts";
import type { Service, StartInput } from "./service.ts";
import { pingRedis } from "./service.ts";
import { type Home, startServer, temporaryHome } from "./start-server.ts";

/** A local Redis or Valkey from PATH. It is installed first if that is possible; else the result is undefined. */
export async function startLocalRedis(input: Omit<StartInput, "dataDir">): Promise<Service | undefined> {
  const find = () => onPath(["redis-server", "valkey-server"], input.env);
  const program = find() ?? ((await installRedis(input)) ? find() : undefined);
  if (program === undefined) return undefined;
  const home = temporaryHome("redis", tmpdir());
  try {
    const config = join(home.dir, "redis.conf");
    return await startServer({
      name: "Redis",
      home,
      signal: "TERM",
      command: (atPort) => {
        // In a file, because every local user can read the command line, and the settings hold the password.
        writeFileSync(config, configText(home, atPort), { mode: 0o600 });
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

function configText({ dir, password }: Home, port: number): string {
  const lines: readonly (readonly [string, string])[] = [
    ["bind", "127.0.0.1"],
    ["port", String(port)],
    ["requirepass", password],
    ["dir", dir],
    ["daemonize", "no"],
    ["save", ""],
    ["appendonly", "no"],
    // A Redis that evicts keys loses jobs: BullMQ warns, and `serve` refuses.
    ["maxmemory-policy", "noeviction"],
  ];
  return lines.map(([name, value]) => `${name} ${JSON.stringify(value)}\n`).join("");
}

/**
 * Installs `redis-server` with apt-get, as root on Debian or Ubuntu; false elsewhere. Throws `UnreachableError`
 * (`redis_install_failed`) with the output of apt-get.
 */
async function installRedis(input: Omit<StartInput, "dataDir">): Promise<boolean> {
  if (!(await mayAptInstall(input.env))) return false;
  if ((await input.mayInstall?.("redis-server with apt-get")) === false) return false;
  input.say("No Redis on PATH: installing redis-server with apt-get (its system service stays off).");
  try {
    await aptInstall(["redis-server"], input.env);
    return true;
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new UnreachableError({
      code: "redis_install_failed",
      message: `No Redis to use: REDIS_URL is not set, none is on PATH, and apt-get could not install redis-server: ${said}`,
      next: "Set REDIS_URL=redis://host:6379, or install redis-server or valkey-server yourself.",
      cause,
    });
  }
}

/**
 * One installer runs at a time, and checks again when its turn comes: two test runs may start together.
 *
 * A package may start its service, now and at every boot, but only its program is needed. During the installation, a
 * policy (https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt) denies starting services, unless the
 * machine has its own policy. Afterwards a service of the first package's name is disabled. A package that was installed
 * before stays untouched, since its service may be in use.
 */
const SCRIPT = `
set -e
exec 9>/var/lock/usage-etl-install; flock 9
if command -v "$1" >/dev/null || dpkg-query -W -f '\${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; then exit 0; fi
apt-get update -q
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' >$policy
  chmod 755 $policy
fi
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
if [ -d /run/systemd/system ] && systemctl cat "$1" >/dev/null 2>&1; then systemctl disable --now "$1"; fi
`;

const INSTALL_MS = 300_000;

/** Whether `aptInstall` can work here: as root on Debian or Ubuntu. */
export async function mayAptInstall(env: NodeJS.ProcessEnv): Promise<boolean> {
  if (process.getuid?.() !== 0 || !existsSync("/etc/debian_version")) return false;
  return await promisify(execFile)("/bin/sh", ["-c", "command -v apt-get"], { env }).then(
    () => true,
    () => false,
  );
}

/**
 * Installs packages with apt-get, unless the first is installed; its program has the package's name. Throws an error
 * whose message is the output of apt-get.
 */
export async function aptInstall(
  packages: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  try {
    await promisify(execFile)("/bin/sh", ["-c", SCRIPT, "sh", ...packages], {
      cwd: "/",
      env: { ...env, DEBIAN_FRONTEND: "noninteractive" },
      timeout: INSTALL_MS,
    });
  } catch (cause) {
    const said = cause instanceof Error && "stderr" in cause ? String(cause.stderr).trim() : "";
    throw new Error(said === "" ? String(cause) : said, { cause });
  }
}

/** The first of these programs that a folder of PATH has, as a path. */
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

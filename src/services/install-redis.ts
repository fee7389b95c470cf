import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { UnreachableError } from "../errors.ts";
import type { StartInput } from "./service.ts";

/**
 * One installer runs at a time, and checks again when its turn comes: two test runs may start together.
 *
 * The package would start its service on port 6379, now and at every boot, but only the program is needed. During the
 * installation, a policy (https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt) denies starting
 * services, unless the machine has its own policy. Afterwards the service is disabled. A package that was installed
 * before stays untouched, since its service may be in use.
 */
const SCRIPT = `
set -e
exec 9>/var/lock/usage-etl-install; flock 9
if command -v redis-server >/dev/null || dpkg-query -W -f '\${db:Status-Status}' redis-server 2>/dev/null | grep -qx installed; then exit 0; fi
apt-get update -q
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' >$policy
  chmod 755 $policy
fi
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 redis-server
if [ -d /run/systemd/system ]; then systemctl disable --now redis-server; fi
`;

const INSTALL_MS = 300_000;

/**
 * Installs `redis-server` with apt-get, as root on Debian or Ubuntu; false elsewhere. Throws `UnreachableError`
 * (`redis_install_failed`) with the output of apt-get.
 */
export async function installRedis(input: StartInput): Promise<boolean> {
  const mayInstall =
    process.getuid?.() === 0 && existsSync("/etc/debian_version") && (await hasApt(input.env));
  if (!mayInstall) return false;
  input.say("No Redis on PATH: installing redis-server with apt-get (its system service stays off).");
  try {
    await promisify(execFile)("/bin/sh", ["-c", SCRIPT], {
      cwd: "/",
      env: { ...input.env, DEBIAN_FRONTEND: "noninteractive" },
      timeout: INSTALL_MS,
    });
    return true;
  } catch (cause) {
    const said = cause instanceof Error && "stderr" in cause ? String(cause.stderr).trim() : String(cause);
    throw new UnreachableError({
      code: "redis_install_failed",
      message: `No Redis to use: REDIS_URL is not set, none is on PATH, and apt-get could not install redis-server: ${said}`,
      next: "Set REDIS_URL=redis://host:6379, or install redis-server or valkey-server yourself.",
      cause,
    });
  }
}

async function hasApt(env: NodeJS.ProcessEnv): Promise<boolean> {
  return await promisify(execFile)("/bin/sh", ["-c", "command -v apt-get"], { env }).then(
    () => true,
    () => false,
  );
}

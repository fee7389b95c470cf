import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";

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

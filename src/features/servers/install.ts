import { type ExecFileOptions, execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { reasonOf } from "../../core/base/errors.ts";

/** The error's message is what the program wrote to stderr. */
export async function run(program: string, args: readonly string[], where: ExecFileOptions): Promise<void> {
  try {
    await promisify(execFile)(program, args, { timeout: 300_000, ...where });
  } catch (cause) {
    const { stderr = "" } = cause as { stderr?: string };
    throw new Error(stderr.trim() || reasonOf(cause), { cause });
  }
}

/** One installer runs at a time, and checks again at its turn. A policy keeps the package from starting its service. */
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

export function mayAptInstall(env: NodeJS.ProcessEnv): boolean {
  return process.getuid?.() === 0 && onPath(["apt-get"], env) !== undefined;
}

export async function aptInstall(packages: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const quiet = { ...env, DEBIAN_FRONTEND: "noninteractive" };
  await run("/bin/sh", ["-c", INSTALL, "sh", ...packages], { cwd: "/", env: quiet });
}

export function onPath(names: readonly string[], { PATH = "" }: NodeJS.ProcessEnv): string | undefined {
  const folders = PATH.split(delimiter).filter(Boolean);
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

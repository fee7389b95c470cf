import { execFileSync, spawnSync } from "node:child_process";
import { UsageError } from "../../errors.ts";

/** The user for Postgres if this process is root, since Postgres refuses to run as root. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

const NAME = "postgres";

/** The ids of the user `postgres`, who is created if needed. Undefined if this process is not root. */
export function serverUser(say: (line: string) => void): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const known = idsOf(NAME);
  if (known !== undefined) return known;
  say(`Postgres does not run as root: creating the system user ${NAME} for it.`);
  const made = spawnSync("/usr/sbin/useradd", [
    "--system",
    "--user-group",
    "--no-create-home",
    "--shell",
    "/usr/sbin/nologin",
    NAME,
  ]);
  const ids = idsOf(NAME);
  if (ids !== undefined) return ids;
  throw new UsageError({
    code: "postgres_user_missing",
    message: `Postgres does not run as root, and the user ${NAME} could not be created: ${String(made.stderr || made.error?.message)}`,
    next: `Create a user ${NAME}, run as another user than root, or set DATABASE_URL.`,
  });
}

/**
 * Whether the user can reach and use a path (`test` operator `-x` or `-w`). It is tried as that user, because the modes of
 * all parent folders, groups and access lists matter.
 */
export function canUse(user: ServerUser | undefined, operator: "-x" | "-w", path: string): boolean {
  const tried = spawnSync("/bin/sh", ["-c", `test ${operator} "$1"`, "sh", path], { cwd: "/", ...user });
  return tried.status === 0;
}

function idsOf(name: string): ServerUser | undefined {
  try {
    const id = (flag: string) =>
      Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
    return { uid: id("-u"), gid: id("-g") };
  } catch {
    return undefined;
  }
}

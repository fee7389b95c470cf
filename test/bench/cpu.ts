import { readdirSync, readFileSync } from "node:fs";

/** CPU time as Linux counts it, in ms. */

interface Counted {
  readonly parent: number;
  readonly own: number;
  /** Of its children that have ended. */
  readonly ended: number;
}

/** Of a process. Undefined: it is gone. */
function countedOf(pid: number | string): Counted | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ").map(Number) ?? [];
    const [parent = 0, user = 0, system = 0, ...children] = [fields[1], ...fields.slice(11, 15)];
    const [endedUser = 0, endedSystem = 0] = children;
    // In hundredths of a second.
    return { parent, own: (user + system) * 10, ended: (endedUser + endedSystem) * 10 };
  } catch {
    return undefined;
  }
}

export function cpuMsOf(pid: number): number {
  return countedOf(pid)?.own ?? 0;
}

/** Of a whole Postgres, that of its sessions so far included. `session`: the process of one of them. */
export function postgresCpuMs(session: number): number {
  const postmaster = countedOf(session)?.parent ?? 0;
  const { own, ended } = countedOf(postmaster) ?? { own: 0, ended: 0 };
  const running = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(countedOf)
    .filter((counted) => counted?.parent === postmaster)
    .reduce((sum, counted) => sum + (counted?.own ?? 0), 0);
  return own + ended + running;
}

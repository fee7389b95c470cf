import { userInfo } from "node:os";
import type { Actor } from "../../store/work/operator-actions.ts";

/** Who types commands here: the user's name by the operating system. A container's user may have none. */
export function commandActor(): Actor {
  return { name: userName(), role: "operator", via: "command" };
}

function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    // Nobody entered the user's number in the list of users.
    return null;
  }
}

import { counted, printableLine } from "../base/printable.ts";
import type { NamedWorkspace } from "../store/access/withdrawn-zeros.ts";

const MOST_NAMED = 10;

export function namesOf(all: readonly NamedWorkspace[]): string {
  const named = all
    .slice(0, MOST_NAMED)
    .map(({ workspaceId, name }) =>
      name === null ? workspaceId : `${printableLine(name)} (${workspaceId})`,
    );
  const left = all.length - named.length;
  return `${named.join(", ")}${left === 0 ? "" : ` and ${left} more`}`;
}

/** Describes workspaces that no usage ever proved readable and nothing proves readable now. Undefined for an empty list. */
export function neverReadProblem(all: readonly NamedWorkspace[]) {
  if (all.length === 0) return undefined;
  return {
    code: "workspace_unverified",
    message: `The usage of ${counted(all.length, "workspace")} is not known, because nothing shows that the key reads ${all.length === 1 ? "it" : "them"}: ${namesOf(all)}.`,
    next: `Give the key access, or record a trace there: the next sync loads it. Or leave it out: name the other workspaces in USAGE_WORKSPACE_IDS, or accept it when you close a month.`,
  };
}

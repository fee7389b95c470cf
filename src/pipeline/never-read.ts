import { counted, printableLine } from "../printable.ts";
import type { NamedWorkspace } from "../store/coverage/withdrawn-zeros.ts";

const MOST_NAMED = 10;

/** Names workspaces in a sentence, the first ten of many. */
export function namesOf(all: readonly NamedWorkspace[]): string {
  const named = all
    .slice(0, MOST_NAMED)
    .map(({ workspaceId, name }) =>
      name === null ? workspaceId : `${printableLine(name)} (${workspaceId})`,
    );
  const left = all.length - named.length;
  return `${named.join(", ")}${left === 0 ? "" : ` and ${left} more`}`;
}

/** Describes workspaces to which no usage ever proved access, and nothing does now; undefined if there are none. */
export function neverReadProblem(all: readonly NamedWorkspace[]) {
  const [first] = all;
  if (first === undefined) return undefined;
  return {
    code: "workspace_unverified",
    message: `The usage of ${counted(all.length, "workspace")} is not known, because nothing shows that the key reads ${all.length === 1 ? "it" : "them"}: ${namesOf(all)}.`,
    next: `Give the key access, or record a trace there: the next sync loads it. Or leave it out: name the other workspaces in USAGE_WORKSPACE_IDS, or close a month with \`--without ${first.workspaceId}\`.`,
  };
}

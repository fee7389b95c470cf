import type { ListedOnly, WithdrawnZeros } from "../../store/coverage/zeros.ts";

/** Workspaces that a person is shown by name. A large customer may have a thousand. */
const MOST_NAMED = 10;

/** These lines, or the first of them and how many were left out. */
export function firstLines(lines: readonly string[], ofWhat: string): string[] {
  const left = lines.length - MOST_NAMED;
  return left <= 0
    ? [...lines]
    : [...lines.slice(0, MOST_NAMED), `And ${left} more ${ofWhat}, which --json shows.`];
}

/** A line for each workspace: what was withdrawn, and what that leaves open. */
export function describeWithdrawn(all: readonly WithdrawnZeros[]): string[] {
  const lines = all.map(({ workspaceId, zeros, firstDay, lastDay, closedMonths }) => {
    const closed =
      closedMonths.length === 0 ? "" : ` Closed months with such days: ${closedMonths.join(", ")}.`;
    return `${zeros} zeros (days x dimensions) of workspace ${workspaceId} were withdrawn, ${firstDay} to ${lastDay}: the key had lost access. They are fetched again when access is proven.${closed}`;
  });
  return firstLines(lines, "workspaces with withdrawn zeros");
}

/** One line, or none. */
export function describeListedOnly(all: readonly ListedOnly[]): string[] {
  if (all.length === 0) return [];
  const named = all.slice(0, MOST_NAMED).map(({ workspaceId, zeros }) => `${zeros} of ${workspaceId}`);
  const left = all.slice(MOST_NAMED);
  const rest = left.reduce((sum, { zeros }) => sum + zeros, 0);
  return [
    `Zeros (days x dimensions) that rest on the listing alone, because no answer ever named the workspace: ${named.join(", ")}${
      left.length === 0 ? "" : `, and ${rest} of ${left.length} more workspaces, which status --json shows`
    }`,
  ];
}

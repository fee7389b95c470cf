import type { ListedOnly, WithdrawnZeros } from "../../store/report/zeros.ts";

/** A line for each workspace: what was withdrawn, and what that leaves open. */
export function describeWithdrawn(all: readonly WithdrawnZeros[]): string[] {
  return all.map(({ workspaceId, zeros, firstDay, lastDay, closedMonths }) => {
    const closed =
      closedMonths.length === 0 ? "" : ` Closed months with such days: ${closedMonths.join(", ")}.`;
    return `${zeros} zeros (days x dimensions) of workspace ${workspaceId} were withdrawn, ${firstDay} to ${lastDay}: the key had lost access. They are fetched again when access is proven.${closed}`;
  });
}

/** One line, or none. */
export function describeListedOnly(all: readonly ListedOnly[]): string[] {
  if (all.length === 0) return [];
  const named = all.map(({ workspaceId, zeros }) => `${zeros} of ${workspaceId}`).join(", ");
  return [
    `Zeros (days x dimensions) that rest on the listing alone, because no answer ever named the workspace: ${named}`,
  ];
}

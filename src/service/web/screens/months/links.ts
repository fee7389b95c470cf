import type { OpenPoint } from "../../../../domain/months/check-list.ts";
import { dayOf } from "../../../../domain/time/days.ts";
import { DAY_MS } from "../../../../domain/time/stride.ts";

type Fields = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** A path with a query. A list gives a field several times; what is undefined is left out. */
export function address(path: string, fields: Fields): string {
  const query = new URLSearchParams();
  for (const [name, given] of Object.entries(fields)) {
    for (const value of [given ?? []].flat()) query.append(name, String(value));
  }
  return query.size === 0 ? path : `${path}?${query}`;
}

/** The days of an open point, as the other screens take them. */
function daysOf({ groupBy, first, last, workspaceIds }: OpenPoint, source: string) {
  // Many ids make an address that no server takes: then the page shows all workspaces.
  const workspace = workspaceIds.length <= 20 ? workspaceIds : undefined;
  return {
    ...{ source, stride: "day", from: dayOf(first), to: dayOf(last + DAY_MS) },
    ...{ group_by: groupBy, workspace },
  };
}

/** Where an open point leads: to what the platform says of one day, or to its days in the coverage. */
export function cellsOf(point: OpenPoint, source: string): string {
  const { workspace, ...days } = daysOf(point, source);
  const [only, ...others] = point.workspaceIds;
  if (only === undefined || others.length > 0) return address("/coverage", days);
  return address(point.first === point.last ? "/cell" : "/coverage", { ...days, workspace: only });
}

/** Where what is open can be loaded; undefined where no load helps. */
export function backfillOf(point: OpenPoint, source: string): string | undefined {
  const { reason, meter } = point;
  // The page of backfills loads traces; the command beside the list loads the others.
  if (meter !== "traces" || !["missing", "failed", "unverified", "provisional"].includes(reason))
    return undefined;
  return address("/backfills/new", {
    ...daysOf(point, source),
    reprocess: reason === "provisional" ? "all" : undefined,
  });
}

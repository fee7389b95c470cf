import { z } from "zod";
import type { GridStride } from "../../../domain/coverage/coverage-grid.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../../domain/usage/record.ts";
import { UsageError } from "../../../errors.ts";

/** What the addresses of coverage and cell say. */

const text = z.string().max(1000);
/** A form sends a field that was left empty as an empty text. */
export const optional = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema.optional());
const INSTANT = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:00(\.000)?)?Z?)?$/;

/** A UTC day or hour as epoch milliseconds. */
const instant = text
  .refine((value) => INSTANT.test(value), "it is not a day or hour such as 2026-03-01 or 2026-03-01T05:00")
  .transform((value, context) => {
    const at = Date.parse(value.length === 10 || value.endsWith("Z") ? value : `${value}Z`);
    const isRead = Number.isFinite(at) && new Date(at).toISOString().startsWith(value.slice(0, 10));
    if (isRead && at % 3_600_000 === 0) return at;
    context.addIssue({ code: "custom", message: "it is not a day of the calendar, or not a whole hour" });
    return z.NEVER;
  });

export const TARGET = {
  source: optional(text),
  stride: optional(z.enum(["day", "hour"], "it is not one of day, hour")),
  from: optional(instant),
  to: optional(instant),
  group_by: optional(z.enum(GROUPINGS, `it is not one of ${GROUPINGS.join(", ")}`)),
  workspace: optional(text),
};

/** Part of the coverage. What is left out stands for all of it. */
export interface Target {
  readonly source: string;
  readonly stride?: GridStride | undefined;
  readonly range?: Interval | undefined;
  readonly groupBy?: GroupBy | undefined;
  readonly workspaceId?: string | undefined;
}

/** An address of the pages. Every state has one that can be shared. */
export function addressOf(path: string, target: Target, more: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({ source: target.source });
  const { stride, range, groupBy, workspaceId } = target;
  if (stride !== undefined) query.set("stride", stride);
  if (range !== undefined) {
    query.set("from", written(range.start));
    query.set("to", written(range.end));
  }
  if (groupBy !== undefined) query.set("group_by", groupBy);
  if (workspaceId !== undefined) query.set("workspace", workspaceId);
  for (const [name, value] of Object.entries(more)) query.set(name, value);
  return `${path}?${query}`;
}

/** A UTC day, or an instant to the minute where it is none. */
export function written(at: number): string {
  const iso = new Date(at).toISOString();
  return iso.endsWith("T00:00:00.000Z") ? iso.slice(0, 10) : `${iso.slice(0, 16)}Z`;
}

/** Errors: `range_reversed`. */
export function checkedRange(range: Interval): Interval {
  if (range.start < range.end) return range;
  throw new UsageError({
    code: "range_reversed",
    message: `The range from ${written(range.start)} does not begin before its end, ${written(range.end)}.`,
    next: "Swap the two. The end is not included: one day is from 2026-03-01 to 2026-03-02.",
  });
}

/** Errors: `source_unknown`. The first source where none is named; undefined where there is none at all. */
export function chosenSource<S extends { readonly source: string }>(
  sources: readonly S[],
  named: string | undefined,
): S | undefined {
  const chosen = named === undefined ? sources[0] : sources.find(({ source }) => source === named);
  if (chosen !== undefined || named === undefined) return chosen;
  throw new UsageError({
    code: "source_unknown",
    message: `There is no source with the name ${JSON.stringify(named)}.`,
    next:
      sources.length === 0
        ? "No source was contacted yet: run `usage-etl sync`."
        : `Known are: ${sources
            .slice(0, 20)
            .map(({ source }) => source)
            .join(", ")}.`,
  });
}

export function workspaceUnknown(source: string, workspaceId: string): UsageError {
  return new UsageError({
    code: "workspace_unknown",
    message: `Source ${source} knows no workspace with the id ${JSON.stringify(workspaceId)}.`,
    next: "Choose one on the page of coverage. `usage-etl workspace list` shows all that are known.",
  });
}

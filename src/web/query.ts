import { z } from "zod";
import { UsageError } from "../core/base/errors.ts";
import type { GridStride } from "../core/domain/coverage/coverage-columns.ts";
import { daysText } from "../core/domain/months/month.ts";
import { dayOf, shortInstant } from "../core/domain/time/days.ts";
import { DAY_MS } from "../core/domain/time/stride.ts";
import type { Interval } from "../core/domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../core/domain/usage/record.ts";
import { address, type Fields, optional, sourceUnknown } from "./parts.ts";

const text = z.string().max(1000);
const INSTANT = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:00(\.000)?)?Z?)?$/;

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

export interface Target {
  readonly source: string;
  readonly stride?: GridStride | undefined;
  readonly range?: Interval | undefined;
  readonly groupBy?: GroupBy | undefined;
  readonly workspaceId?: string | undefined;
}

export function addressOf(path: string, target: Target, more: Fields = {}): string {
  const { source, stride, range, groupBy, workspaceId } = target;
  return address(path, {
    source,
    stride,
    from: range && shortInstant(range.start),
    to: range && shortInstant(range.end),
    group_by: groupBy,
    workspace: workspaceId,
    ...more,
  });
}

export function rangeText({ start, end }: Interval): string {
  if (start % DAY_MS !== 0 || end % DAY_MS !== 0) return `${hour(start)} until ${hour(end)}`;
  return daysText({ from: dayOf(start), to: dayOf(end) });
}

function hour(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace("T", " ");
}

export function checkedRange(range: Interval): Interval {
  if (range.start < range.end) return range;
  throw new UsageError({
    code: "range_reversed",
    message: `The range from ${shortInstant(range.start)} does not begin before its end, ${shortInstant(range.end)}.`,
    next: "Swap the two. The end is not included: one day is from 2026-03-01 to 2026-03-02.",
  });
}

/** Returns the named source, by default the first. Undefined: there are no sources. Error: `source_unknown`. */
export function namedSource<S extends { readonly source: string } | { readonly slug: string }>(
  sources: readonly S[],
  named: string | undefined,
): S | undefined {
  if (named === undefined) return sources[0];
  const slugs = sources.map((one) => ("slug" in one ? one.slug : one.source));
  if (slugs.includes(named)) return sources[slugs.indexOf(named)];
  throw sourceUnknown(named, slugs);
}

export function workspaceUnknown(source: string, workspaceId: string): UsageError {
  return new UsageError({
    code: "workspace_unknown",
    message: `Source ${source} knows no workspace with the id ${JSON.stringify(workspaceId)}.`,
    next: "Choose one on the page of coverage. `usage-etl workspace list` shows all that are known.",
  });
}

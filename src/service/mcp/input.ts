import { z } from "zod";
import { addDays, type Days, daysBetween, isDay } from "../../domain/time/days.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { UsageError } from "../../errors.ts";
import { workspaceNamed } from "../../pipeline/export/names.ts";
import type { Database } from "../../store/db/database.ts";
import type { UsageSource, UsageWorkspace } from "../../store/figures/sources.ts";
import { sourceOf } from "../web/figures/question.ts";

/** What the tools are given, and what it means. */

/** What a tool reads: figures as of one instant. */
export interface Asked {
  /** A snapshot that refuses writes. */
  readonly db: Database;
  /** Postgres's clock, epoch milliseconds. */
  readonly now: number;
  /** Users are named by their id. */
  readonly masked: boolean;
  readonly sources: readonly UsageSource[];
}

/** More would be more than anybody reads in one answer. */
const MOST_ROWS = 100;
const MOST_DAYS = 731;

// Postgres has no text with a NUL in it.
const text = z
  .string()
  .min(1)
  .max(1_000)
  .refine((given) => !given.includes("\0"), "it has a NUL character, which no name and no id has");
const day = z.string().refine(isDay, "it is not a day. Give one such as 2026-03-01");

export const SOURCE = text
  .optional()
  .describe("Slug of the source, an organization of the platform. Needed where there are several.");
export const WORKSPACE = text
  .optional()
  .describe("Name or id of the workspace that the answer is about. Default: all of them together.");
export const BY = z.enum(GROUPINGS).describe("The dimension that divides the figures.");
export const FIND = text.describe("A part of the name or the id, in capitals or not.");
export const ROWS = z.int().min(1).max(MOST_ROWS).default(20).describe("The most rows that are wanted.");
export const RANGE = {
  from: day.describe("First day (UTC), such as 2026-03-01."),
  to: day.describe("Day after the last one (UTC): March 2026 is from 2026-03-01 to 2026-04-01."),
};

/** Errors: `range_reversed`, `range_too_long`. */
export function rangeOf({ from, to }: Days, { most = MOST_DAYS } = {}): Days {
  if (from >= to) {
    throw new UsageError({
      code: "range_reversed",
      message: `from ${from} is not before to ${to}, which leaves no day.`,
      next: `Give a later day as to. It is not included: ${from} alone is from ${from} to ${addDays(from, 1)}.`,
    });
  }
  const days = daysBetween({ from, to });
  if (days <= most) return { from, to };
  throw new UsageError({
    code: "range_too_long",
    message: `The range from ${from} to ${to} has ${days.toLocaleString("en-US")} days. One answer is about ${most} at most.`,
    next: "Ask for a shorter range, several times if need be.",
  });
}

/** Errors: `source_unknown`, `source_unnamed`, `source_unloaded`. */
export function sourceNamed(asked: string | undefined, { sources }: Asked): UsageSource {
  if (asked === undefined && sources.length > 1) {
    throw new UsageError({
      code: "source_unnamed",
      message: `There are ${sources.length} sources, and their figures are never added up.`,
      next: `Name one as source: ${sources.map(({ slug }) => slug).join(", ")}.`,
    });
  }
  const source = sourceOf(asked, sources);
  if (source !== undefined) return source;
  throw new UsageError({
    code: "source_unloaded",
    message: "No source is stored yet, so there are no figures.",
    next: "`usage-etl sync --inline` loads the first usage.",
  });
}

/** Errors: `workspace_unknown`, `workspace_ambiguous`. */
export function workspaceIn(source: UsageSource, asked: string | undefined): UsageWorkspace | undefined {
  return asked === undefined
    ? undefined
    : workspaceNamed(source.workspaces, asked, { listedBy: "The tool find" });
}

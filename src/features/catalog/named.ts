import { UsageError } from "../../core/base/errors.ts";
import { nearest } from "../../core/base/spelling.ts";
import { type CalendarMonth, monthNamed } from "../../core/domain/months/month.ts";
import { type SourceWithWorkspaces, sourcesWithWorkspaces } from "../../core/store/activity/overview.ts";
import type { NamedWorkspace } from "../../core/store/activity/reader-login.ts";
import type { Database } from "../../core/store/db/database.ts";

const MOST_LISTED = 20;

/**
 * The workspace with this id or name. Case matters only if two names differ in nothing else. Errors: `workspace_unknown`,
 * `workspace_ambiguous`.
 */
export function workspaceNamed<W extends NamedWorkspace>(known: readonly W[], requested: string): W {
  const folded = requested.toLowerCase();
  const byId = known.find(({ id }) => id === requested || id === folded);
  if (byId !== undefined) return byId;
  const exact = known.filter(({ name }) => name === requested);
  const named = exact.length > 0 ? exact : known.filter(({ name }) => name?.toLowerCase() === folded);
  const ids = [...new Set(named.map(({ id }) => id))];
  if (ids.length > 1) {
    throw new UsageError({
      code: "workspace_ambiguous",
      message: `${ids.length} workspaces are named ${JSON.stringify(requested)}.`,
      next: `Name one workspace by its id: ${ids.join(", ")}.`,
    });
  }
  if (named[0] !== undefined) return named[0];
  const listed = known.map(({ id, name }) => name ?? id);
  const next = "`usage-etl export --view dim_workspace` lists them.";
  throw unknownName({
    code: "workspace_unknown",
    what: "known workspace",
    name: requested,
    known: [...listed, ...known.map(({ id }) => id)],
    next: listed.length > MOST_LISTED ? next : choice(listed),
  });
}

export function unknownName(given: {
  code: string;
  what: string;
  name: string;
  known: readonly string[];
  next?: string;
}): UsageError {
  const { code, what, name, known, next = choice(known) } = given;
  const near = nearest(name, known);
  return new UsageError({
    code,
    message: `${JSON.stringify(name)} is not a ${what}.${near === undefined ? "" : ` Did you mean ${near}?`}`,
    next,
  });
}

function choice(known: readonly string[]): string {
  return `Choose one of: ${known.join(", ")}.`;
}

interface Stored {
  readonly source: string;
}

/** At least one source. Error: `source_unknown`. */
export function storedSources<S extends Stored>(stored: readonly S[], slug: string | undefined): S[] {
  const meant = stored.filter(({ source }) => slug === undefined || source === slug);
  if (meant.length > 0) return meant;
  throw new UsageError({
    code: "source_unknown",
    message: slug === undefined ? "No source is stored." : `Source ${slug} is not stored.`,
    next: "Run `usage-etl source list` to see the stored sources.",
  });
}

/** Error: `source_unknown`, also if there are several sources and no slug. */
export function storedSource<S extends Stored>(stored: readonly S[], slug: string | undefined): S {
  const meant = storedSources(stored, slug);
  if (meant.length === 1) return meant[0] as S;
  throw new UsageError({
    code: "source_unknown",
    message: "Several sources are stored.",
    next: `Name one with --source: ${meant.map(({ source }) => source).join(", ")}.`,
  });
}

/**
 * The stored sources that are configured, or all if none is. A source that was only tried must not block a close. Error:
 * `source_unloaded`.
 */
export async function sourcesToClose(
  db: Database,
  slugs: readonly string[],
): Promise<SourceWithWorkspaces[]> {
  const listed = await sourcesWithWorkspaces(db);
  const meant = slugs.length === 0 ? listed : listed.filter(({ source }) => slugs.includes(source));
  if (meant.length > 0) return meant;
  throw new UsageError({
    code: "source_unloaded",
    message: `Nothing is loaded for ${slugs.length === 0 ? "any source" : `source ${slugs.join(", ")}`}.`,
    next: `Run \`usage-etl sync\` first.${listed.length === 0 ? "" : ` Loaded sources: ${listed.map(({ source }) => source).join(", ")}.`}`,
  });
}

export function givenMonth(text: string): CalendarMonth {
  const month = monthNamed(text);
  if (month !== undefined) return month;
  throw new UsageError({
    code: "month_invalid",
    message: `${JSON.stringify(text)} is not a month.`,
    next: "Give a year and a month, such as 2026-03.",
  });
}

/** A month that has begun by `now` (Postgres's clock). Errors: `month_invalid`, `month_not_begun`. */
export function begunMonth(text: string, now: number): CalendarMonth {
  const month = givenMonth(text);
  if (Date.parse(month.start) <= now) return month;
  throw new UsageError({
    code: "month_not_begun",
    message: `${month.name} has not begun.`,
    next: "Choose the current month or an earlier one.",
  });
}

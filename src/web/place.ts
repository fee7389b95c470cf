import { addMonths, monthStart } from "../core/domain/time/days.ts";
import { type Database, query } from "../core/store/db/query.ts";

/** The value of `source` for the sum of all sources. No slug has this character. */
export const ALL_SOURCES = "*";

export const PLACE_COOKIE = "usage_etl_place";

interface KnownSource {
  readonly slug: string;
  readonly dataStart: string;
}

/** The source and month of the header. Every link of the navigation has them, and a cookie keeps them. */
export interface Place {
  /** Chosen: a slug, or `*`. Undefined: no source is stored. */
  readonly source: string | undefined;
  /** Shown: the chosen source or, on a page that cannot show all sources, the last single one. */
  readonly shown: string | undefined;
  /** Such as `2026-10`. */
  readonly month: string;
  /** Such as `2026-10`, the newest first. */
  readonly months: readonly string[];
  readonly sources: readonly KnownSource[];
}

/** What a page's header can choose. */
export interface Chooses {
  /** The page shows one month. */
  readonly month?: boolean;
  /** The page can sum all sources. */
  readonly all?: boolean;
}

const SLUG = /^[a-z][a-z0-9_-]{0,62}$/;
const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;

function textOf(value: unknown, pattern: RegExp): string | undefined {
  return typeof value === "string" && pattern.test(value) ? value : undefined;
}

function sourceOf(value: unknown): string | undefined {
  return value === ALL_SOURCES ? ALL_SOURCES : textOf(value, SLUG);
}

interface Given {
  readonly query: Readonly<Record<string, unknown>>;
  readonly params: Readonly<Record<string, unknown>>;
  readonly cookie: string | undefined;
  readonly now: number;
}

export async function placeOf(db: Database, given: Given, chooses: Chooses): Promise<Place> {
  const sources = await query<KnownSource>(db)`
    select slug, data_start::text as "dataStart" from usage.source order by slug collate "C"`;
  const [keptSource, keptMonth, keptSingle] = (given.cookie ?? "").split("!");
  const isKnown = (slug: string | undefined) => sources.some((one) => one.slug === slug);
  const first = chooses.all && sources.length > 1 ? ALL_SOURCES : sources[0]?.slug;
  const source = [sourceOf(given.query.source), sourceOf(keptSource), first].find(
    (one) => isKnown(one) || (one === ALL_SOURCES && sources.length > 1),
  );
  const single = [source, textOf(keptSingle, SLUG), sources[0]?.slug].find(isKnown);
  const months = monthsOf(sources, given.now);
  const range = textOf(given.query.from, /^\d{4}-\d{2}-\d{2}/);
  const month = [given.params.month, given.query.month, range && monthStart(range).slice(0, 7), keptMonth]
    .map((one) => textOf(one, MONTH))
    .find((one) => one !== undefined && months.includes(one));
  return {
    source,
    shown: source === ALL_SOURCES && !chooses.all ? single : source,
    month: month ?? months[0] ?? "",
    months,
    sources,
  };
}

/** The source and month of links on a page that reads nothing, because Postgres may be away. */
export function placeOfLinks(
  query: Readonly<Record<string, unknown>>,
  cookie: string | undefined,
): { source: string | undefined; month: string | undefined } {
  const [source, month] = (cookie ?? "").split("!");
  return {
    source: sourceOf(query.source) ?? sourceOf(source),
    month: textOf(query.month, MONTH) ?? textOf(month, MONTH),
  };
}

function monthsOf(sources: readonly KnownSource[], now: number): string[] {
  const today = monthStart(new Date(now).toISOString().slice(0, 10));
  const first = sources.map(({ dataStart }) => monthStart(dataStart)).toSorted()[0] ?? today;
  const months = [today.slice(0, 7)];
  for (let month = addMonths(today, -1); month >= first; month = addMonths(month, -1))
    months.push(month.slice(0, 7));
  return months;
}

/** The text of the cookie. It also keeps the last single source, for pages that cannot show all sources. */
export function cookieOf({ source, shown, month }: Place, before: string | undefined): string {
  const single = shown === ALL_SOURCES ? (before ?? "").split("!")[2] : shown;
  return [source ?? "", month, single ?? ""].join("!");
}

/**
 * The query with the shown source, none for all of them, and with the month unless a range was given. An unknown source
 * stays, and is refused later.
 */
export function inPlace(
  query: Readonly<Record<string, unknown>>,
  { shown, month }: Place,
  chooses: Chooses,
): Record<string, unknown> {
  const isGiven = (field: string) => query[field] !== undefined && query[field] !== "";
  const isSource = isGiven("source") && query.source !== ALL_SOURCES;
  return {
    ...query,
    ...(!isSource && { source: shown === ALL_SOURCES ? undefined : shown }),
    ...(chooses.month && !["month", "from", "to"].some(isGiven) && { month }),
  };
}

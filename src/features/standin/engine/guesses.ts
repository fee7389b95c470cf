import { Refusal } from "./refusal.ts";
import type { Settings } from "./settings.ts";

/** Part of a request that a guess may be about. */
interface Asked {
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

interface Sent {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Guess {
  /** The opposite of the guess, as this server does it. */
  readonly about: string;
  readonly settings?: Partial<Settings>;
  /** Paths that the next functions are about. */
  readonly path?: RegExp;
  readonly reads?: (asked: Asked) => Asked;
  readonly refuses?: (query: Asked["query"]) => Refusal | undefined;
  /** Changes a response of status 200. */
  readonly sends?: (body: string, asked: Asked) => Sent;
}

type Wire = Readonly<Record<string, unknown>>;
type Rule = Pick<Guess, "path" | "sends">;

const USAGE = /\/granular-usage$/;
const EXPORT = /\/granular-usage\/export$/;
const SANDBOXES = /\/sandboxes\/usage\/costs$/;
const EVALUATORS = /\/evaluators\/spend$/;
const PROVIDER = /\/billing\/usage$/;
const ORGANIZATION_LIMITS = /\/usage-limits\/org$/;
const KEYS = /\/(service-keys|api-key)$/;
const DAY = 86_400_000;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Well-formed, and the id of nothing. */
const NOTHING = "00000000-0000-4000-8000-000000000000";

const listOf = (of: Wire, field: string) => (of[field] ?? []) as readonly Wire[];
const inText = (path: RegExp, change: (body: string) => string): Rule => {
  return { path, sends: (body) => ({ body: change(body) }) };
};
const inJson = (path: RegExp, change: (body: never, asked: Asked) => unknown): Rule => {
  return {
    path,
    sends: (body, asked) => ({ body: JSON.stringify(change(JSON.parse(body) as never, asked)) }),
  };
};
const inList = (path: RegExp, field: string, change: (list: readonly Wire[], asked: Asked) => unknown) =>
  inJson(path, (body: Wire, asked) => ({ ...body, [field]: change(listOf(body, field), asked) }));
const records = (change: Parameters<typeof inList>[2]) => inList(USAGE, "usage", change);
const eachRecord = (change: (record: Wire) => unknown) => records((all) => all.map(change));
const first =
  (change: object) =>
  ([one, ...others]: readonly Wire[]) =>
    one === undefined ? [] : [{ ...one, ...change }, ...others];
const eachTime = (change: (time: string, isDay: boolean) => string) =>
  inJson(USAGE, (body: Wire) => {
    const isDay = (body.stride as Wire).hours === 0;
    const usage = listOf(body, "usage").map((one) => ({
      ...one,
      time_bucket: change(String(one.time_bucket), isDay),
    }));
    return { ...body, usage };
  });
/** Changes physical lines. A name with a line break takes several. */
const eachLine = (change: (line: string, nth: number) => string) =>
  inText(EXPORT, (body) => `${body.split("\r\n").slice(0, -1).map(change).join("\r\n")}\r\n`);
const inRules = (change: (group: Wire) => unknown) =>
  inList(EVALUATORS, "groups", (groups) => groups.map(change));
const inDays = (change: (day: Wire) => unknown) =>
  inRules((group) => ({ ...group, days: listOf(group, "days").map(change) }));
const inTotals = (change: (total: Wire) => unknown) =>
  inJson(PROVIDER, (totals: readonly Wire[]) => totals.flatMap(change));
const isLong = ({ start_time: start, end_time: end }: Wire, days: number) =>
  Date.parse(String(end)) - Date.parse(String(start)) > days * DAY;
const badRequest = (detail: string) => new Refusal(400, { detail });

/** Each name makes the stand-in a server for which a guess does not hold (docs/platform.md, Guesses). */
export const GUESSES = {
  // Requests
  "one-id": {
    about: "two workspace ids make a URL too long (414)",
    path: /\/granular-usage/,
    refuses: ({ workspace_ids: ids }) =>
      Array.isArray(ids) ? new Refusal(414, { detail: "URI Too Long" }) : undefined,
  },
  "more-ids-ignored": {
    about: "workspace ids after the first are ignored",
    path: /\/granular-usage/,
    reads: ({ query, headers }) => {
      return { headers, query: { ...query, workspace_ids: [query.workspace_ids].flat()[0] } };
    },
  },
  "ids-optional": {
    about: "usage without workspace ids is that of every workspace",
    settings: { workspaceIds: "optional" },
  },
  "short-range": {
    about: "a range of more than three days is refused (422)",
    path: /\/granular-usage/,
    refuses: (query) =>
      isLong(query, 3)
        ? new Refusal(422, {
            detail: [{ loc: ["query", "start_time"], msg: "The range is too long", type: "value_error" }],
          })
        : undefined,
  },
  "past-ends": { about: "an end in the future is refused (422)", settings: { refuseFuture: true } },
  "unknown-ignored": { about: "unknown parameters are ignored", settings: { unknownParameters: "ignore" } },
  "unknown-400": {
    about: "unknown parameters are refused with 400 and a sentence",
    settings: { unknownParameters: "400" },
  },
  // Buckets and records
  "epoch-buckets": {
    about: "long buckets begin at the epoch, not with the range",
    settings: { align: "epoch" },
  },
  "zero-buckets": { about: "buckets without usage are sent as 0", settings: { omitZero: false } },
  "end-included": {
    about: "the bucket that begins at the end of the range is included",
    ...records((all, { query: { end_time: end } }) => [
      ...all,
      ...all.slice(-1).map((one) => ({ ...one, time_bucket: end })),
    ]),
  },
  "local-days": {
    about: "days begin at 08:00 UTC",
    ...eachTime((time, isDay) => (isDay ? time.replace("T00", "T08") : time)),
  },
  "offset-times": {
    about: "times have an offset and fractions of a second",
    ...eachTime((time) => time.replace("Z", ".000000+00:00")),
  },
  "bare-times": { about: "times have no offset", ...eachTime((time) => time.replace("Z", "")) },
  "date-buckets": {
    about: "a day's bucket is a date",
    ...eachTime((time, isDay) => (isDay ? time.slice(0, 10) : time)),
  },
  "other-stride": {
    about: "the stride has one field, in hours",
    ...inJson(USAGE, ({ stride, ...body }: { stride: { days: number; hours: number } }) => {
      return { ...body, stride: { hours: stride.days * 24 + stride.hours } };
    }),
  },
  "any-order": { about: "records have no order", ...records((all) => [...all].reverse()) },
  "split-records": {
    about: "a bucket of an id comes in two records, to be added",
    ...records((all) =>
      all.flatMap((one) => {
        const part = Math.min(1, Number(one.traces));
        return [part, Number(one.traces) - part].map((traces) => ({ ...one, traces }));
      }),
    ),
  },
  "double-records": { about: "each record comes twice", ...records((all) => [...all, ...all]) },
  "upper-ids": {
    about: "ids are in upper case",
    ...inText(/./, (body) => body.replace(UUID, (id) => id.toUpperCase())),
  },
  "null-traces": { about: "a count may be null", ...records(first({ traces: null })) },
  "text-traces": {
    about: "counts are texts",
    ...eachRecord((one) => ({ ...one, traces: String(one.traces) })),
  },
  "unnamed-workspaces": {
    about: "records by workspace name no workspace",
    ...eachRecord(({ dimensions, ...one }) => {
      const { workspace_id: _id, ...others } = dimensions as Wire;
      return { ...one, dimensions: others };
    }),
  },
  "no-names": {
    about: "records have ids only",
    ...eachRecord((one) => {
      const ids = Object.entries(one.dimensions as Wire).filter(([key]) => !/_(name|email)$/.test(key));
      return { ...one, dimensions: Object.fromEntries(ids) };
    }),
  },
  "empty-204": {
    about: "a response without usage is 204",
    path: USAGE,
    sends: (body) => (listOf(JSON.parse(body), "usage").length > 0 ? { body } : { status: 204, body: "" }),
  },
  "tiers-overlap": {
    about: "short-lived traces are all traces",
    path: /\/granular-usage/,
    reads: ({ query: { trace_tier: tier, ...query }, headers }) => {
      return {
        headers,
        query:
          tier === "shortlived" ? query : { ...query, ...(tier === undefined ? {} : { trace_tier: tier }) },
      };
    },
  },
  "one-kind": {
    about: "records have only the measures of their kind",
    ...records((all, { query: { kind } }) =>
      all.map(({ traces, nodes_executed: nodes, agent_runs: runs, agent_uptime_seconds: uptime, ...one }) =>
        kind === "langsmith_deployments"
          ? { ...one, nodes_executed: nodes, agent_runs: runs, agent_uptime_seconds: uptime }
          : { ...one, traces },
      ),
    ),
  },
  "statistics-of-all": {
    about: "a key reads the statistics of a workspace whose usage it does not read",
    path: /\/workspaces\/current\/stats$/,
    reads: ({ query, headers }) => ({ query, headers: { ...headers, "x-tenant-id": undefined } }),
    sends: (body, { headers }) => {
      return { body: JSON.stringify({ ...JSON.parse(body), tenant_id: headers["x-tenant-id"] }) };
    },
  },
  // CSV export
  "csv-more-columns": {
    about: "the export has a further column, which is the first",
    ...inText(EXPORT, (body) => body.replace(/^/, "Currency,").replace(/\r\n(?=2)/g, "\r\nUSD,")),
  },
  "csv-any-order": {
    about: "rows of the export have no order",
    ...inText(EXPORT, (body) => {
      const [head = "", ...rows] = body.split(/\r\n(?=2|$)/);
      return [head, ...rows.slice(0, -1).reverse(), ""].join("\r\n");
    }),
  },
  "csv-plain-times": {
    about: "times of the export have a blank and an offset",
    ...inText(EXPORT, (body) => body.replace(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z/g, "$1 $2+00:00")),
  },
  "csv-last-seconds": {
    about: "the export names the last second of a bucket",
    ...inText(EXPORT, (body) =>
      body.replace(/(?<=\r\n[^,]*,)([^,]*Z)/g, (end) => new Date(Date.parse(end) - 1000).toISOString()),
    ),
  },
  "csv-thousands": {
    about: "numbers of the export have thousands separators",
    ...eachLine((line) => line.replace(/,(\d+)(\d{3})$/, ',"$1,$2"')),
  },
  "csv-lower-case": {
    about: "the export's columns have other names",
    ...eachLine((line, nth) => (nth === 0 ? line.toLowerCase() : line)),
  },
  "csv-semicolons": {
    about: "cells of the export are separated by semicolons",
    ...eachLine((line) => line.replaceAll(",", ";")),
  },
  "csv-byte-order-mark": {
    about: "the export begins with a byte order mark",
    ...inText(EXPORT, (body) => `\u{FEFF}${body}`),
  },
  "csv-no-last-end": {
    about: "the last line of the export has no end",
    ...inText(EXPORT, (body) => body.replace(/\r\n$/, "")),
  },
  "csv-line-feeds": {
    about: "lines of the export end with a line feed",
    ...inText(EXPORT, (body) => body.replaceAll("\r\n", "\n")),
  },
  // Other usage
  "sandbox-own-pages": {
    about: "a page size is refused (400), and not by name",
    settings: { sandboxPages: "fixed" },
  },
  "sandbox-any-order": {
    about: "items have no order",
    ...inList(SANDBOXES, "items", (items) => [...items].reverse()),
  },
  "sandbox-zeros": {
    about: "amounts of 0 are sent, and zeros at the end of a decimal",
    ...inList(SANDBOXES, "items", (items) => {
      const eachAmount = (item: Wire, change: (amount: string) => string) =>
        Object.fromEntries(
          Object.entries(item).map(([field, value]) => [
            field,
            /^\d+(\.\d+)?$/.test(String(value)) ? change(String(value)) : value,
          ]),
        );
      const zero = items.slice(0, 1).map((one) => ({ ...eachAmount(one, () => "0"), resource_id: NOTHING }));
      const long = (amount: string) => `${amount}${amount.includes(".") ? "" : "."}000000`;
      return [
        ...items.map((one) => eachAmount(one, (amount) => long(amount).replace(/(\.\d{6})\d*$/, "$1"))),
        ...zero,
      ];
    }),
  },
  "sandbox-empty-cursor": {
    about: "an empty cursor ends the pages",
    ...inJson(SANDBOXES, (page: Wire) => ({ ...page, next_cursor: page.next_cursor ?? "" })),
  },
  "workspace-ignored": {
    about: "costs and spend are those of the key's first workspace, whatever X-Tenant-Id names",
    path: /\/sandboxes\/usage\/costs$|\/evaluators\/spend$/,
    reads: ({ query, headers }) => ({ query, headers: { ...headers, "x-tenant-id": undefined } }),
  },
  "spend-null-zeros": {
    about: "amounts of 0 are null",
    ...inDays((day) => ({ ...day, spend_usd: day.spend_usd === 0 ? null : day.spend_usd })),
  },
  "spend-null": {
    about: "spend that is not known is null",
    ...inDays((day) => ({ ...day, spend_usd: null })),
  },
  "spend-texts": {
    about: "spend is a text",
    ...inDays((day) => ({ ...day, spend_usd: String(day.spend_usd) })),
  },
  "spend-times": {
    about: "days of spend are times",
    ...inDays((day) => ({ ...day, date: `${day.date}T00:00:00Z` })),
  },
  "spend-no-totals": {
    about: "groups have no totals",
    ...inRules(({ total_spend_usd: _spend, total_trace_count: _traces, ...group }) => group),
  },
  "spend-weeks": {
    about: "seven days of spend begin on the Monday before the first day that is requested",
    path: EVALUATORS,
    reads: ({ query, headers }) => ({
      headers,
      query: { ...query, period_start: mondayBefore(query.period_start) },
    }),
  },
  "spend-mondays": {
    about: "spend is refused unless its first day is a Monday (422)",
    path: EVALUATORS,
    refuses: ({ period_start: day }) =>
      mondayBefore(day) === day ? undefined : new Refusal(422, { detail: "period_start must be a Monday" }),
  },
  // The bill
  "totals-in-parts": {
    about: "the provider's totals of a month are of its halves",
    ...inTotals(({ start_timestamp: from, end_timestamp: to, ...total }) => {
      const half = new Date(Date.parse(String(from)) + 14 * DAY).toISOString();
      return [
        { ...total, start_timestamp: from, end_timestamp: half },
        { ...total, start_timestamp: half, end_timestamp: to, value: 0, groups: {} },
      ];
    }),
  },
  "totals-last-seconds": {
    about: "the provider's totals end with the last second of a month",
    ...inTotals((total) => {
      return {
        ...total,
        end_timestamp: new Date(Date.parse(String(total.end_timestamp)) - 1000).toISOString(),
      };
    }),
  },
  "totals-other-names": {
    about: "the provider's metrics have other names",
    ...inTotals((total) => ({ ...total, billable_metric_name: "Base Units" })),
  },
  "totals-by-name": {
    about: "the provider's totals name workspaces by name",
    ...inTotals(({ groups, ...total }) => {
      const named = Object.values(groups as Wire).map((amount, nth) => [`Workspace ${nth}`, amount]);
      return { ...total, groups: Object.fromEntries(named) };
    }),
  },
  "totals-texts": {
    about: "the provider's amounts are texts",
    ...inTotals((total) => ({ ...total, value: String(total.value) })),
  },
  "lists-in-objects": {
    about: "lists of the bill are in an object",
    ...inJson(/\/(billing\/usage|usage-limits(\/org)?|taggings)$/, (data) => ({ data })),
  },
  "keys-in-objects": { about: "lists of keys are in an object", ...inJson(KEYS, (keys) => ({ keys })) },
  "names-of-other-ids": {
    about: "lists of names have other ids than usage",
    ...inText(/\/(service-keys|api-key|boxes|snapshots)$/, (body) =>
      body.replace(/"(short_key|id)":"/g, "$&other-"),
    ),
  },
  "lists-counted": {
    about: "lists have pages of one entry, and X-Pagination-Total names how many there are",
    path: /\/(workspaces|billing\/usage|usage-limits(\/org)?|taggings|service-keys|api-key)$/,
    sends: (body) => {
      const all: readonly unknown[] = JSON.parse(body);
      return { body: JSON.stringify(all.slice(0, 1)), headers: { "x-pagination-total": String(all.length) } };
    },
  },
  "list-cut": {
    about: "the list of workspaces has only one page of one entry",
    ...inJson(/\/workspaces$/, (all: readonly Wire[]) => all.slice(0, 1)),
  },
  "limits-minus-one": {
    about: "no limit is -1",
    ...inJson(ORGANIZATION_LIMITS, (limits: readonly Wire[]) =>
      limits.map((one) => ({ ...one, limit_value: -1 })),
    ),
  },
  "bill-400": {
    about: "the bill of the organization is refused with 400, not 403 or 404",
    path: /\/orgs\/current\/billing(\/usage)?$|\/usage-limits\/org$/,
    refuses: () => badRequest("This key is not of an administrator"),
  },
  "bill-last-second": {
    about: "a billing period ends with its last second",
    ...inJson(/\/orgs\/current\/billing$/, (period: Wire) => {
      const end = new Date(Date.parse(String(period.end_of_billing_period)) - 1000).toISOString();
      return { ...period, end_of_billing_period: end };
    }),
  },
  "no-lists": { about: "there is no list of workspaces", settings: { listing: false } },
} as const satisfies Record<string, Guess>;
export type GuessName = keyof typeof GUESSES;
export const guessNames = Object.keys(GUESSES) as GuessName[];

export function guessesAbout(names: readonly GuessName[], path: string): Guess[] {
  return names.map((name): Guess => GUESSES[name]).filter((one) => one.path?.test(path));
}

export function settingsOf(names: readonly GuessName[]): Partial<Settings> {
  return Object.assign({}, ...names.map((name): Guess => GUESSES[name]).map(({ settings }) => settings));
}

/** 1970-01-05 was a Monday. */
function mondayBefore(date: unknown): string {
  const day = Date.parse(String(date)) / DAY;
  return new Date((day - ((day + 3) % 7)) * DAY).toISOString().slice(0, 10);
}

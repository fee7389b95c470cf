import type { Asked, Deviation } from "../../src/features/standin/engine/deviation.ts";
import { Refusal } from "../../src/features/standin/engine/refusal.ts";
import type { Settings } from "../../src/features/standin/engine/settings.ts";

/**
 * `right`: all figures, and the same bill. `later`: the running day is loaded once it has ended. A pattern: what is said about
 * figures that are missing. `wrong`: what is said about figures that are wrong until then, because no response shows it.
 */
export type Outcome = "right" | "later" | RegExp | { readonly wrong: RegExp };

interface Guess extends Partial<Deviation> {
  readonly outcome: Outcome;
  readonly settings?: Partial<Settings>;
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

/** The opposite of each guess (docs/platform.md, Guesses), and what comes of it. */
const GUESSES = {
  // Requests
  "one-id": {
    outcome: "right",
    path: /\/granular-usage/,
    refuses: ({ workspace_ids: ids }) =>
      Array.isArray(ids) ? new Refusal(414, { detail: "URI Too Long" }) : undefined,
  },
  "more-ids-ignored": {
    outcome: { wrong: /reconcile: \d+ differences/ },
    path: /\/granular-usage/,
    reads: ({ query, headers }) => {
      return { headers, query: { ...query, workspace_ids: [query.workspace_ids].flat()[0] } };
    },
  },
  "ids-optional": { outcome: "right", settings: { workspaceIds: "optional" } },
  "short-range": {
    outcome: /log: Access was not proven again/,
    path: /\/granular-usage/,
    refuses: (query) =>
      isLong(query, 3)
        ? new Refusal(422, {
            detail: [{ loc: ["query", "start_time"], msg: "The range is too long", type: "value_error" }],
          })
        : undefined,
  },
  "past-ends": { outcome: "later", settings: { refuseFuture: true } },
  "unknown-ignored": { outcome: "right", settings: { unknownParameters: "ignore" } },
  "unknown-400": { outcome: "right", settings: { unknownParameters: "400" } },
  // Buckets and records
  "epoch-buckets": { outcome: "right", settings: { align: "epoch" } },
  "zero-buckets": { outcome: "right", settings: { omitZero: false } },
  "end-included": {
    outcome: /sync: bucket .* is outside the window/,
    ...records((all, { query: { end_time: end } }) => [
      ...all,
      ...all.slice(-1).map((one) => ({ ...one, time_bucket: end })),
    ]),
  },
  "local-days": {
    outcome: /failure: bucket_misplaced bucket .*T08:00:00.000Z is outside the window/,
    ...eachTime((time, isDay) => (isDay ? time.replace("T00", "T08") : time)),
  },
  "offset-times": { outcome: "right", ...eachTime((time) => time.replace("Z", ".000000+00:00")) },
  "bare-times": { outcome: "right", ...eachTime((time) => time.replace("Z", "")) },
  "date-buckets": {
    outcome: /sync: .*time_bucket = "\S+" is not a timestamp/,
    ...eachTime((time, isDay) => (isDay ? time.slice(0, 10) : time)),
  },
  "other-stride": {
    outcome: "right",
    ...inJson(USAGE, ({ stride, ...body }: { stride: { days: number; hours: number } }) => {
      return { ...body, stride: { hours: stride.days * 24 + stride.hours } };
    }),
  },
  "any-order": { outcome: "right", ...records((all) => [...all].reverse()) },
  "split-records": {
    outcome: "right",
    ...records((all) =>
      all.flatMap((one) => {
        const part = Math.min(1, Number(one.traces));
        return [part, Number(one.traces) - part].map((traces) => ({ ...one, traces }));
      }),
    ),
  },
  "double-records": {
    outcome: { wrong: /reconcile: \d+ differences/ },
    ...records((all) => [...all, ...all]),
  },
  "upper-ids": { outcome: "right", ...inText(/./, (body) => body.replace(UUID, (id) => id.toUpperCase())) },
  "null-traces": { outcome: /sync: .*traces = null is refused/, ...records(first({ traces: null })) },
  "text-traces": {
    outcome: /sync: .*traces = "\d+" is refused/,
    ...eachRecord((one) => ({ ...one, traces: String(one.traces) })),
  },
  "unnamed-workspaces": {
    outcome: "right",
    ...eachRecord(({ dimensions, ...one }) => {
      const { workspace_id: _id, ...others } = dimensions as Wire;
      return { ...one, dimensions: others };
    }),
  },
  "no-names": {
    outcome: /reconcile: \d+ differences/,
    ...eachRecord((one) => {
      const ids = Object.entries(one.dimensions as Wire).filter(([key]) => !/_(name|email)$/.test(key));
      return { ...one, dimensions: Object.fromEntries(ids) };
    }),
  },
  "empty-204": {
    outcome: /responded with 204/,
    path: USAGE,
    sends: (body) => (listOf(JSON.parse(body), "usage").length > 0 ? { body } : { status: 204, body: "" }),
  },
  "tiers-overlap": {
    outcome: /meter longlived: the tiers do not add up/,
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
    outcome: "right",
    ...records((all, { query: { kind } }) =>
      all.map(({ traces, nodes_executed: nodes, agent_runs: runs, agent_uptime_seconds: uptime, ...one }) =>
        kind === "langsmith_deployments"
          ? { ...one, nodes_executed: nodes, agent_runs: runs, agent_uptime_seconds: uptime }
          : { ...one, traces },
      ),
    ),
  },
  "statistics-of-all": {
    outcome: { wrong: /bill: differs/ },
    path: /\/workspaces\/current\/stats$/,
    reads: ({ query, headers }) => ({ query, headers: { ...headers, "x-tenant-id": undefined } }),
    sends: (body, { headers }) => {
      return { body: JSON.stringify({ ...JSON.parse(body), tenant_id: headers["x-tenant-id"] }) };
    },
  },
  // CSV export
  "csv-more-columns": {
    outcome: "right",
    ...inText(EXPORT, (body) => body.replace(/^/, "Currency,").replace(/\r\n(?=2)/g, "\r\nUSD,")),
  },
  "csv-any-order": {
    outcome: "right",
    ...inText(EXPORT, (body) => {
      const [head = "", ...rows] = body.split(/\r\n(?=2|$)/);
      return [head, ...rows.slice(0, -1).reverse(), ""].join("\r\n");
    }),
  },
  "csv-plain-times": {
    outcome: "right",
    ...inText(EXPORT, (body) => body.replace(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z/g, "$1 $2+00:00")),
  },
  "csv-last-seconds": {
    outcome: /reconcile: .*no bucket ends one day after its start/,
    ...inText(EXPORT, (body) =>
      body.replace(/(?<=\r\n[^,]*,)([^,]*Z)/g, (end) => new Date(Date.parse(end) - 1000).toISOString()),
    ),
  },
  "csv-thousands": {
    outcome: /reconcile: .*"\d,\d{3}" is not a whole number/,
    ...eachLine((line) => line.replace(/,(\d+)(\d{3})$/, ',"$1,$2"')),
  },
  "csv-lower-case": {
    outcome: /reconcile: .*the export has no column "Time Bucket Start"/,
    ...eachLine((line, nth) => (nth === 0 ? line.toLowerCase() : line)),
  },
  "csv-semicolons": {
    outcome: /reconcile: .*the export has no column "Time Bucket Start"/,
    ...eachLine((line) => line.replaceAll(",", ";")),
  },
  "csv-byte-order-mark": { outcome: "right", ...inText(EXPORT, (body) => `\u{FEFF}${body}`) },
  "csv-no-last-end": { outcome: "right", ...inText(EXPORT, (body) => body.replace(/\r\n$/, "")) },
  "csv-line-feeds": { outcome: "right", ...inText(EXPORT, (body) => body.replaceAll("\r\n", "\n")) },
  // Other usage
  "sandbox-own-pages": { outcome: "right", settings: { sandboxPages: "fixed" } },
  "sandbox-any-order": { outcome: "right", ...inList(SANDBOXES, "items", (items) => [...items].reverse()) },
  "sandbox-zeros": {
    outcome: "right",
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
    outcome: /meter sandboxes: .*next_cursor is refused/,
    ...inJson(SANDBOXES, (page: Wire) => ({ ...page, next_cursor: page.next_cursor ?? "" })),
  },
  "workspace-ignored": {
    outcome: /meter evaluators: it responds .* for a workspace that does not exist/,
    path: /\/sandboxes\/usage\/costs$|\/evaluators\/spend$/,
    reads: ({ query, headers }) => ({ query, headers: { ...headers, "x-tenant-id": undefined } }),
  },
  "spend-null-zeros": {
    outcome: "right",
    ...inDays((day) => ({ ...day, spend_usd: day.spend_usd === 0 ? null : day.spend_usd })),
  },
  "spend-null": {
    outcome: /sync: .*spend_usd is null, and total_spend_usd does not show that it is 0/,
    ...inDays((day) => ({ ...day, spend_usd: null })),
  },
  "spend-texts": {
    outcome: /sync: .*spend_usd is "\S+", not an amount/,
    ...inDays((day) => ({ ...day, spend_usd: String(day.spend_usd) })),
  },
  "spend-times": { outcome: "right", ...inDays((day) => ({ ...day, date: `${day.date}T00:00:00Z` })) },
  "spend-no-totals": {
    outcome: "right",
    ...inRules(({ total_spend_usd: _spend, total_trace_count: _traces, ...group }) => group),
  },
  "spend-weeks": {
    outcome: /meter evaluators: .*is about the seven days from/,
    path: EVALUATORS,
    reads: ({ query, headers }) => ({
      headers,
      query: { ...query, period_start: mondayBefore(query.period_start) },
    }),
  },
  "spend-mondays": {
    outcome: /meter evaluators: .*responded with 422/,
    path: EVALUATORS,
    refuses: ({ period_start: day }) =>
      mondayBefore(day) === day ? undefined : new Refusal(422, { detail: "period_start must be a Monday" }),
  },
  // The bill
  "totals-in-parts": {
    outcome: "right",
    ...inTotals(({ start_timestamp: from, end_timestamp: to, ...total }) => {
      const half = new Date(Date.parse(String(from)) + 14 * DAY).toISOString();
      return [
        { ...total, start_timestamp: from, end_timestamp: half },
        { ...total, start_timestamp: half, end_timestamp: to, value: 0, groups: {} },
      ];
    }),
  },
  "totals-last-seconds": {
    outcome: /bill: other_period/,
    ...inTotals((total) => {
      return {
        ...total,
        end_timestamp: new Date(Date.parse(String(total.end_timestamp)) - 1000).toISOString(),
      };
    }),
  },
  "totals-other-names": {
    outcome: /bill: no_metric/,
    ...inTotals((total) => ({ ...total, billable_metric_name: "Base Units" })),
  },
  "totals-by-name": {
    outcome: /bill: differs/,
    ...inTotals(({ groups, ...total }) => {
      const named = Object.values(groups as Wire).map((amount, nth) => [`Workspace ${nth}`, amount]);
      return { ...total, groups: Object.fromEntries(named) };
    }),
  },
  "totals-texts": {
    outcome: /bill: .*value is "\d+", not an amount/,
    ...inTotals((total) => ({ ...total, value: String(total.value) })),
  },
  "lists-in-objects": {
    outcome: /bill: .*must be an array/,
    ...inJson(/\/(billing\/usage|usage-limits(\/org)?|taggings)$/, (data) => ({ data })),
  },
  "keys-in-objects": {
    outcome: /log: Not read for the bill: .*api-key/,
    ...inJson(KEYS, (keys) => ({ keys })),
  },
  "names-of-other-ids": {
    outcome: /bill: names 0/,
    ...inText(/\/(service-keys|api-key|boxes|snapshots)$/, (body) =>
      body.replace(/"(short_key|id)":"/g, "$&other-"),
    ),
  },
  "lists-counted": {
    outcome: /has only 1 of \d+ entries/,
    path: /\/(workspaces|billing\/usage|usage-limits(\/org)?|taggings|service-keys|api-key)$/,
    sends: (body) => {
      const all: readonly unknown[] = JSON.parse(body);
      return { body: JSON.stringify(all.slice(0, 1)), headers: { "x-pagination-total": String(all.length) } };
    },
  },
  "list-cut": {
    outcome: /bill: unknown_workspace WORKSPACE/,
    ...inJson(/\/workspaces$/, (all: readonly Wire[]) => all.slice(0, 1)),
  },
  "limits-minus-one": {
    outcome: /bill: .*limit_value is refused/,
    ...inJson(ORGANIZATION_LIMITS, (limits: readonly Wire[]) =>
      limits.map((one) => ({ ...one, limit_value: -1 })),
    ),
  },
  "bill-400": {
    outcome: /bill: .*responded with 400/,
    path: /\/orgs\/current\/billing(\/usage)?$|\/usage-limits\/org$/,
    refuses: () => badRequest("This key is not of an administrator"),
  },
  "bill-last-second": {
    outcome: "right",
    ...inJson(/\/orgs\/current\/billing$/, (period: Wire) => {
      const end = new Date(Date.parse(String(period.end_of_billing_period)) - 1000).toISOString();
      return { ...period, end_of_billing_period: end };
    }),
  },
  "no-lists": { outcome: "right", settings: { listing: false } },
} as const satisfies Record<string, Guess>;
export type GuessName = keyof typeof GUESSES;
export const guessNames = Object.keys(GUESSES) as GuessName[];

export function guessOf(name: GuessName): Guess {
  return GUESSES[name];
}

/** The stand-in for which these guesses do not hold. */
export function without(names: readonly GuessName[]) {
  const guesses = names.map(guessOf);
  const deviations = guesses.filter((one): one is Guess & Deviation => one.path !== undefined);
  return {
    deviations,
    ...Object.assign({}, ...guesses.map(({ settings }) => settings)),
  } as Partial<Settings> & { deviations: readonly Deviation[] };
}

/** 1970-01-05 was a Monday. */
function mondayBefore(date: unknown): string {
  const day = Date.parse(String(date)) / DAY;
  return new Date((day - ((day + 3) % 7)) * DAY).toISOString().slice(0, 10);
}

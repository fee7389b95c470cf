import type { Fault } from "../../src/features/standin/engine/faults.ts";

/** Bodies that the platform should not send, as faults of the stand-in. */

type Wire = Readonly<Record<string, unknown>>;

const inJson = (change: (body: never, query: Wire) => unknown): Fault => {
  return { kind: "body", change: (body, query) => JSON.stringify(change(JSON.parse(body) as never, query)) };
};
const onFirst = (list: unknown, change: (one: Wire) => readonly unknown[]) => {
  const [first, ...others] = list as Wire[];
  return first === undefined ? [] : [...change(first), ...others];
};

let again = 0;
const cursorAt = (cursor: unknown) => {
  const { offset } = JSON.parse(Buffer.from(`${cursor ?? ""}`, "base64url").toString() || '{"offset":0}');
  return Buffer.from(JSON.stringify({ offset, again: again++ })).toString("base64url");
};
const inFirstItem = (change: (item: Wire) => object) =>
  inJson((page: Wire) => ({ ...page, items: onFirst(page.items, (one) => [{ ...one, ...change(one) }]) }));

export const SANDBOX_FAULTS = {
  "empty-page": inJson((_page, { cursor }) => ({ items: [], next_cursor: cursorAt(cursor) })),
  /** The same items again, with another cursor. */
  "repeated-page": inJson((page: Wire, { cursor }) => ({ ...page, next_cursor: cursorAt(cursor) })),
  /** The same cursor each time. */
  endless: inJson((page: Wire) => {
    return { ...page, next_cursor: Buffer.from('{"offset":0}').toString("base64url") };
  }),
  "cursor-expired": { kind: "status", status: 400, content_type: "application/problem+json", body: "{}" },
  "no-cursor": inJson(({ items }: Wire) => ({ items })),
  null: inFirstItem(() => ({ lcu: null })),
  negative: inFirstItem(() => ({ lcu: "-0.5" })),
  "many-digits": inFirstItem(() => ({ lcu: "0.123456789012345678901234567891" })),
  "off-hour": inFirstItem(({ period_start: start }) => {
    return { period_start: new Date(Date.parse(`${start}`) + 17 * 60_000).toISOString() };
  }),
  standard: inFirstItem(() => ({ compute_standard_units: "-0.5", storage_standard_units: 0.25 })),
} as const satisfies Record<string, Fault>;

const inFirstGroup = (change: (group: Wire) => readonly unknown[]) =>
  inJson((body: Wire) => ({ ...body, groups: onFirst(body.groups, change) }));
const inFirstDay = (change: (day: Wire, body: Wire) => readonly unknown[]) =>
  inJson((body: Wire) => ({
    ...body,
    groups: onFirst(body.groups, (group) => [
      { ...group, days: onFirst(group.days, (day) => change(day, body)) },
    ]),
  }));

export const EVALUATOR_FAULTS = {
  negative: inFirstDay((day) => [{ ...day, spend_usd: -0.5 }]),
  "not-a-number": inFirstDay((day) => [{ ...day, spend_usd: "0.5" }]),
  "other-day": inFirstDay((day, { period_start: start }) => {
    const before = new Date(Date.parse(`${start}`) - 86_400_000).toISOString().slice(0, 10);
    return [{ ...day, date: before }];
  }),
  "day-twice": inFirstDay((day) => [day, day]),
  "group-twice": inFirstGroup((group) => [group, group]),
  "no-rule": inFirstGroup(({ run_rule_id: _rule, ...group }) => [group]),
  /** An object without any of the fields. */
  foreign: inJson(() => ({})),
} as const satisfies Record<string, Fault>;

const inUptime = (change: (seconds: number) => number | undefined) =>
  inJson((body: { usage: Wire[] }) => ({
    ...body,
    usage: body.usage.map((one) => ({
      ...one,
      agent_uptime_seconds: change(Number(one.agent_uptime_seconds)),
    })),
  }));

export const DEPLOYMENT_FAULTS = {
  missing: inUptime(() => undefined),
  negative: inUptime((seconds) => -1 - seconds),
  fractional: inUptime((seconds) => seconds + 0.5),
} as const satisfies Record<string, Fault>;

import { z } from "zod";
import type { Interval } from "../../domain/time/window.ts";
import type { PlatformHttp, RequestOptions } from "../http/http.ts";
import { getJson, readJson, responseError } from "../http/read-body.ts";
import { foreignError, tooManyPagesError } from "../parse/response-error.ts";
import { describeValue, fromWireId, toWireTime } from "../parse/wire-values.ts";
import { ADDRESS } from "./names.ts";

/** A snapshot of a number that the platform reports outside of usage (docs/platform.md, Statement). */
export interface WireLine {
  readonly kind: LineKind;
  /** The platform's ids of the line's subject, or the line's place without any. Empty: the organization. */
  readonly lineId: string;
  /** Whom the line is about, in the platform's words. Null: the organization. */
  readonly subject: string | null;
  /** The platform's word for the window under way, such as `monthly`. */
  readonly window: string | null;
  /** Exact decimal. Null: unknown, or no limit, as the remark says. */
  readonly value: string | null;
  readonly remark: string | null;
  /** True if the response has a wrong value, which the remark names with its place. */
  readonly isWrong: boolean;
}

export type LineKind =
  | "members"
  | "gateway_spend"
  | "engine_units"
  | "engine_enforced_limit"
  | "engine_limit"
  | "fleet_limit";

const list = z.array(z.unknown());
const fields = z.record(z.string(), z.unknown());

/** Largest documented page of members. */
const PAGE_SIZE = 500;
const MOST_PAGES = 1000;

/**
 * Counts the active members. Only an empty page ends the list, because a server may send smaller pages. Errors: those of `get`;
 * `response_invalid`.
 */
export async function members(
  http: PlatformHttp,
  { signal, sendMore }: RequestOptions & { readonly sendMore: <T>(send: () => Promise<T>) => Promise<T> },
): Promise<WireLine[]> {
  const ids = new Set<string>();
  const wrong: string[] = [];
  for (let offset = 0, page = 0; ; page++) {
    const query = new URLSearchParams({ limit: String(PAGE_SIZE), offset: String(offset) });
    const send = () => http.get({ path: "/api/v1/orgs/current/members/active", query, signal });
    const response = await (page === 0 ? send() : sendMore(send));
    const items = await readJson(response, list);
    if (items.length === 0) break;
    const before = ids.size + wrong.length;
    items.forEach((item, nth) => {
      const given = fields.safeParse(item).data?.id;
      const id = typeof given === "string" && given !== "" ? fromWireId(given) : undefined;
      if (id === undefined) wrong.push(`${offset + nth}.id is ${describeValue(given)}, not an id`);
      else ids.add(id);
    });
    if (ids.size + wrong.length === before)
      throw responseError(foreignError("its pages have no end: the same members come again"), response);
    if (page >= MOST_PAGES) throw responseError(tooManyPagesError(MOST_PAGES), response);
    offset += items.length;
  }
  const read = wrong[0] === undefined ? known(String(ids.size)) : refused(wrong[0]);
  return [{ ...OF_ALL, kind: "members", ...read }];
}

type Amount = Pick<WireLine, "value" | "remark" | "isWrong">;
const known = (value: string): Amount => ({ value, remark: null, isWrong: false });
const unknown = (remark: string): Amount => ({ value: null, remark, isWrong: false });
const refused = (remark: string): Amount => ({ value: null, remark, isWrong: true });

const OF_ALL = { lineId: "", subject: null, window: null };

/** Spend of each policy in its window under way. Errors: those of `get`; `response_invalid`. */
export async function gatewaySpend(http: PlatformHttp, { signal }: RequestOptions): Promise<WireLine[]> {
  const query = new URLSearchParams({ policy_type: "spend_cap" });
  const items = await getJson(http, { path: "/api/v1/platform/gateway-policies", query, signal }, list);
  return linesOf(items, "", (policy, place) => ({
    kind: "gateway_spend",
    ids: [policy.id],
    subject: subjectOf(policy.subject_matchers),
    window: windowOf(policy.config),
    // A missing value means that the platform does not know it.
    ...amountOf(policy.current_spend_usd ?? null, { place: `${place}.current_spend_usd`, may: "number" }),
  }));
}

function subjectOf(matchers: unknown): string | null {
  const named = (list.safeParse(matchers).data ?? []).flatMap((matcher) => {
    const { key, value } = fields.safeParse(matcher).data ?? {};
    return typeof key === "string" && typeof value === "string" ? [`${key} ${shown(value)}`] : [];
  });
  return named.length === 0 ? null : named.join(", ").slice(0, MOST_TEXT);
}

/** A policy with several limits has one spend, and the platform does not name its window. */
function windowOf(config: unknown): string | null {
  const { window, limits } = fields.safeParse(config).data ?? {};
  const windows = [
    window,
    ...(list.safeParse(limits).data ?? []).map((one) => fields.safeParse(one).data?.window),
  ];
  const named = windows.filter((one) => typeof one === "string" && one !== "");
  return named.length === 0 ? null : named.join(" or ").slice(0, MOST_TEXT);
}

const spendSchema = z.object({
  // Go omits empty fields.
  items: list.nullish(),
  organization_id: z.string().nullish(),
  next_cursor: z.unknown().optional(),
  resolved_monthly_spend_limit_lcu: z.unknown().optional(),
});

/** Engine's units by workspace and project. Errors: those of `get`; `response_invalid`. */
export async function engineUnits(
  http: PlatformHttp,
  { start, end, signal }: Interval & RequestOptions,
): Promise<WireLine[]> {
  const query = new URLSearchParams({ start: toWireTime(start), end: toWireTime(end) });
  const response = await http.get({ path: "/issues-agent/lcu-spend", query, signal });
  const found = await readJson(response, spendSchema);
  if ((found.items ?? found.organization_id ?? null) === null)
    throw responseError(foreignError("it has neither items nor organization_id"), response);
  if ((found.next_cursor ?? null) !== null)
    throw responseError(foreignError("it has a further page, which no document describes"), response);
  const lines = linesOf(found.items ?? [], "items.", (item, place) => {
    const unpriced = item.lcu_unpriced_row_count ?? 0;
    const amount = amountOf(item.lcu_total, { place: `${place}.lcu_total`, may: "text" });
    return {
      kind: "engine_units",
      ids: [item.tenant_id, item.session_id],
      subject: [
        ["workspace", item.tenant_id],
        ["project", item.session_id],
      ]
        .flatMap(([what, id]) => (typeof id === "string" ? [`${what} ${shown(id)}`] : []))
        .join(", "),
      window: "month",
      ...amount,
      remark:
        amount.remark ??
        (unpriced === 0 ? null : `without ${describeValue(unpriced)} rows that have no rate`),
    };
  });
  return [...lines, ...limitLine("engine_enforced_limit", found, "resolved_monthly_spend_limit_lcu")];
}

/** Otherwise any other object would pass for an organization of an older server. */
const organizationSchema = z.looseObject({ id: z.string() });

export async function engineLimit(http: PlatformHttp, { signal }: RequestOptions): Promise<WireLine[]> {
  const found = await getJson(http, { path: "/api/v1/orgs/current", signal }, organizationSchema);
  return limitLine("engine_limit", found, "engine_lcu_spend_limit_monthly");
}

export function fleetLimitOf(found: Readonly<Record<string, unknown>>): WireLine[] {
  const field = "fleet_lcu_spend_limit_monthly";
  // Some descriptions have it among the organization's settings.
  const of = field in found ? found : (fields.safeParse(found.config).data ?? {});
  const given = of[field];
  return limitLine("fleet_limit", typeof given === "number" && given < 0 ? { [field]: null } : of, field);
}

/** No line if the server does not have the field. Null: no limit. */
function limitLine(kind: LineKind, of: Readonly<Record<string, unknown>>, field: string): WireLine[] {
  if (!(field in of) || of[field] === undefined) return [];
  const given = of[field];
  const read = given === null ? unknown("no limit") : amountOf(given, { place: field, may: "both" });
  return [{ ...OF_ALL, kind, window: "month", ...read }];
}

/** Ids and words of the platform are cut here. */
const MOST_TEXT = 500;

function shown(text: string): string {
  return ADDRESS.test(text) ? "(an address)" : (fromWireId(text) ?? "(an id that cannot be kept)");
}

type Item = Omit<WireLine, "lineId"> & { readonly ids: readonly unknown[] };

/** A wrong entry is a line of its own with an unknown value, so that it is not missing without a word. */
function linesOf(
  items: readonly unknown[],
  prefix: string,
  lineOf: (item: Readonly<Record<string, unknown>>, place: string) => Item,
): WireLine[] {
  const seen = new Set<string>();
  return items.map((wire, nth) => {
    const place = `${prefix}${nth}`;
    const { ids, ...line } = lineOf(fields.safeParse(wire).data ?? {}, place);
    const texts = ids.map((id) => (typeof id === "string" && id !== "" ? fromWireId(id) : undefined));
    const lineId = texts.join(" ");
    const wrong = texts.includes(undefined) ? "has no id" : seen.has(lineId) ? "comes twice" : undefined;
    if (wrong === undefined) {
      seen.add(lineId);
      return { ...line, lineId };
    }
    return { ...line, lineId: `(${place})`, ...refused(`${place} ${wrong}`) };
  });
}

const DECIMAL = /^\d{1,18}(\.\d{1,18})?$/;

/** `may`: the type that the documentation names. */
function amountOf(
  given: unknown,
  { place, may }: { place: string; may: "number" | "text" | "both" },
): Amount {
  if (given === null) return unknown("the platform does not know it");
  if (may !== "text" && typeof given === "number" && given >= 0 && given <= Number.MAX_SAFE_INTEGER)
    return known(String(given));
  if (may !== "number" && typeof given === "string" && DECIMAL.test(given)) return known(given);
  return refused(`${place} is ${describeValue(given)}, not an amount`);
}

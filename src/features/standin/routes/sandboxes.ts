import { z } from "zod";
import { instant, wrongEnd } from "../billing/query.ts";
import type { Fault } from "../engine/faults.ts";
import { sandboxTypes } from "../engine/organisation.ts";
import { badRequest, checked, noRoute } from "../engine/refusal.ts";
import { SANDBOX_COSTS } from "../engine/sandboxes.ts";
import { HOUR } from "../engine/trend.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";
import { toWireTime } from "./billing.ts";
import { tenantOf } from "./organisation.ts";

type Wrong = Extract<Fault, { kind: "sandbox" }>["wrong"] | null;

const LONGEST = 31 * 24 * HOUR;

/** Documented (docs/platform.md, Sandbox costs). */
const PAGE = { most: 100, default: 20 };

/** docs/platform.md, Sandbox costs. A repeated parameter is refused (our guess). */
const costsQuery = z.strictObject({
  start_time: instant,
  end_time: instant,
  granularity: z.enum(["HOUR", "RESOURCE"]).default("HOUR"),
  // Accepted, and without effect (our guess).
  include_totals: z.string().optional(),
  include_daily: z.string().optional(),
  cursor: z.string().optional(),
  page_size: z
    .string()
    .regex(/^\d{1,4}$/, "Input should be a valid integer")
    .transform(Number)
    .pipe(z.int().min(1).max(PAGE.most))
    .default(PAGE.default),
  // The id of another workspace is ignored (our guess).
  resource_ids: z.preprocess(
    (given) => (given === undefined ? undefined : [given].flat()),
    z.array(z.guid().toLowerCase()).max(100).optional(),
  ),
  resource_type: z.enum(sandboxTypes).optional(),
});
type CostsQuery = z.output<typeof costsQuery>;

/** A cursor is opaque (documented). Its content is our own. */
const cursorSchema = z.strictObject({
  offset: z.int().min(0),
  again: z.int().min(0),
  /** True: a fault gives the next page the same cursor. */
  endless: z.boolean(),
});
type Cursor = z.output<typeof cursorSchema>;

export function sandboxes(world: World): Route[] {
  return [
    {
      method: "GET",
      path: SANDBOX_COSTS,
      needs: "workspace",
      refusesBy: "problem",
      handle({ query: given, headers, fault }) {
        const { sandboxes, sandboxPages } = world.settings;
        if (sandboxes === "off") throw noRoute("GET", SANDBOX_COSTS);
        if (sandboxPages === "fixed" && given.page_size !== undefined)
          throw badRequest("The request is invalid");
        const query = checked(costsQuery, given, "query");
        const { start_time: start, end_time: end, page_size: size } = query;
        if (end <= start) throw wrongEnd("end_time must be after start_time");
        if (end - start > LONGEST) throw wrongEnd("end_time must be at most 31 days after start_time");
        const wrong = fault?.kind === "sandbox" ? fault.wrong : null;
        const workspaceId = tenantOf(world, { headers });
        const from = cursorOf(query, wrong);
        const items = itemsOf(world, query, workspaceId);
        const page = wrong === "empty-page" ? [] : items.slice(from.offset, from.offset + size);
        const next = nextOf(from, { size, count: items.length, wrong });
        const cursor = wrong === "no-cursor" ? {} : { next_cursor: next && toWireCursor(next) };
        return json({ items: spoilt(page, wrong), ...cursor });
      },
    },
  ];
}

interface Item {
  readonly period_start: string;
  readonly lcu: string | null;
  readonly [field: string]: unknown;
}

/** Sorted by time, then in the organization's order, without empty resources (our guesses). */
function itemsOf({ sandboxLedger }: World, query: CostsQuery, workspaceId: string): Item[] {
  const { start_time: start, end_time: end, resource_ids: ids, resource_type: type } = query;
  const isByHour = query.granularity === "HOUR";
  const rows = isByHour
    ? sandboxLedger.hours({ workspaceId, start, end })
    : sandboxLedger.sums({ workspaceId, start, end }).map((sum) => ({ ...sum, hour: start }));
  // Null means not available (documented). That these are always null is our own.
  const none = { vcpu_hours: null, memory_gib_hours: null, storage_gib_hours: null };
  return rows
    .filter((row) => ids === undefined || ids.includes(row.resourceId))
    .filter((row) => type === undefined || type === row.resourceType)
    .map((row) => ({
      resource_id: row.resourceId,
      resource_type: row.resourceType,
      period_start: toWireTime(row.hour),
      lcu: toWireUnits(row.lcu),
      lsu: toWireUnits(row.lsu),
      compute_standard_units: toWireUnits(row.compute_standard_units),
      storage_standard_units: toWireUnits(row.storage_standard_units),
      ...(isByHour ? {} : none),
    }));
}

/** Trailing zeros are omitted (docs/platform.md, Sandbox costs). */
function toWireUnits(millionths: number | null): string | null {
  if (millionths === null) return null;
  const whole = Math.floor(millionths / 1_000_000);
  const digits = String(millionths % 1_000_000).padStart(6, "0");
  return `${whole}.${digits}`.replace(/\.?0+$/, "");
}

/** Other cursors are refused with 400 (our guess). */
function cursorOf({ cursor }: CostsQuery, wrong: Wrong): Cursor {
  if (cursor === undefined) return { offset: 0, again: 0, endless: false };
  try {
    if (wrong === "cursor-expired") throw new Error("it has expired");
    return cursorSchema.parse(JSON.parse(Buffer.from(cursor, "base64url").toString()));
  } catch {
    throw badRequest("Invalid cursor");
  }
}

function nextOf(from: Cursor, page: { size: number; count: number; wrong: Wrong }): Cursor | null {
  const { size, count, wrong } = page;
  const offset = Math.min(from.offset + size, count);
  if (from.endless) return from;
  if (wrong === "endless") return { ...from, offset, endless: true };
  if (wrong === "empty-page" || wrong === "repeated-page") return { ...from, again: from.again + 1 };
  return offset < count ? { ...from, offset } : null;
}

function toWireCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString("base64url");
}

function spoilt([first, ...others]: readonly Item[], wrong: Wrong): Item[] {
  if (first === undefined) return [];
  const late = toWireTime(Date.parse(first.period_start) + 17 * 60_000);
  const changes: Partial<Record<NonNullable<Wrong>, object>> = {
    null: { lcu: null },
    negative: { lcu: "-0.5" },
    "many-digits": { lcu: "0.123456789012345678901234567891" },
    "off-hour": { period_start: late },
    standard: { compute_standard_units: "-0.5", storage_standard_units: 0.25 },
  };
  return [wrong === null ? first : { ...first, ...changes[wrong] }, ...others];
}

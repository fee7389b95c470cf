import { z } from "zod";
import { instant, wrongEnd } from "../billing/query.ts";
import { sandboxTypes } from "../engine/organisation.ts";
import { badRequest, checked, noRoute } from "../engine/refusal.ts";
import { SANDBOX_COSTS } from "../engine/sandboxes.ts";
import { HOUR } from "../engine/trend.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";
import { toWireTime } from "./billing.ts";
import { tenantOf } from "./organisation.ts";

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
const cursorSchema = z.object({ offset: z.int().min(0) });

export function sandboxes(world: World): Route[] {
  return [
    {
      method: "GET",
      path: SANDBOX_COSTS,
      needs: "workspace",
      refusesBy: "problem",
      handle({ query: given, headers }) {
        const { sandboxes, sandboxPages } = world.settings;
        if (sandboxes === "off") throw noRoute("GET", SANDBOX_COSTS);
        if (sandboxPages === "fixed" && given.page_size !== undefined)
          throw badRequest("The request is invalid");
        const query = checked(costsQuery, given, "query");
        const { start_time: start, end_time: end, page_size: size } = query;
        if (end <= start) throw wrongEnd("end_time must be after start_time");
        if (end - start > LONGEST) throw wrongEnd("end_time must be at most 31 days after start_time");
        const workspaceId = tenantOf(world, { headers });
        const offset = offsetOf(query);
        const items = itemsOf(world, query, workspaceId);
        const next = offset + size;
        return json({
          items: items.slice(offset, next),
          next_cursor: next < items.length ? toWireCursor({ offset: next }) : null,
        });
      },
    },
  ];
}

/** Sorted by time, then in the organization's order, without empty resources (our guesses). */
function itemsOf({ sandboxLedger }: World, query: CostsQuery, workspaceId: string): object[] {
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
function offsetOf({ cursor }: CostsQuery): number {
  if (cursor === undefined) return 0;
  try {
    return cursorSchema.parse(JSON.parse(Buffer.from(cursor, "base64url").toString())).offset;
  } catch {
    throw badRequest("Invalid cursor");
  }
}

function toWireCursor(cursor: z.output<typeof cursorSchema>): string {
  return Buffer.from(JSON.stringify(cursor)).toString("base64url");
}

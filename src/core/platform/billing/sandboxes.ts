import { z } from "zod";
import { PlatformError } from "../../base/errors.ts";
import {
  DAY_MS,
  floorToGrid,
  HOUR_MS,
  STRIDE_MS,
  type Stride,
  strideOfRange,
} from "../../domain/time/stride.ts";
import { type Interval, partsOf } from "../../domain/time/window.ts";
import { fromUnitText } from "../../domain/usage/amount.ts";
import { type Measure, STANDARD_UNITS } from "../../domain/usage/meter.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import type { PlatformHttp } from "../http/http.ts";
import { readJson, responseError } from "../http/read-body.ts";
import { foreignError, refuserOf, tooManyPagesError } from "../parse/response-error.ts";
import { describeValue, fromWireId, fromWireTime, toWireTime } from "../parse/wire-values.ts";
import type { WorkspaceIo, WorkspaceQuery } from "./by-workspace.ts";

const PATH = "/api/v2/sandboxes/usage/costs";

/** The longest range of one request (docs/platform.md, Sandbox costs). */
const LONGEST = 31 * DAY_MS;
/** Largest documented page size (docs/platform.md, Sandbox costs). */
const PAGE_SIZE = 100;
/** Clients whose server refuses this page size and chooses its own. */
const withoutSize = new WeakSet<PlatformHttp>();
/** The hours of one day of this many resources fit into a page. */
const FEW = Math.floor(PAGE_SIZE / 24);
const MOST_PAGES = 20_000;

/** Only null ends the pages: a page without its cursor must not pass for the last one. */
const pageSchema = z.object({ items: z.array(z.unknown()), next_cursor: z.string().min(1).nullable() });

/**
 * Passes a workspace's sandbox and snapshot units to `onRecords`. Days are sums of hours or, for more than a few resources,
 * sums by resource. Weeks and longer buckets are requested as sums by resource, so that both ways prove each other. Errors:
 * those of `get`; `response_invalid`, which names the item. `onRefused` gets wrong standard units, which are then unknown.
 */
export async function sandboxUsage(
  http: PlatformHttp,
  query: WorkspaceQuery,
  io: WorkspaceIo,
): Promise<{ stride: Stride; records: number }> {
  const stride = strideOfRange(query.end - query.start);
  const reader = new SandboxReader(http, query, io);
  if (stride === "hour" || (stride === "day" && query.groupBy === "project")) {
    await reader.readHours(query, STRIDE_MS[stride]);
    return reader.end(stride);
  }
  // A workspace without sandboxes takes one request for any number of days. For few resources, hours take fewer requests.
  const resources = stride === "day" ? await reader.resources(query) : Number.POSITIVE_INFINITY;
  if (resources > FEW) {
    for (const bucket of partsOf(query, STRIDE_MS[stride])) await reader.readSums(bucket);
  } else if (resources > 0) await reader.readHours(query, DAY_MS);
  return reader.end(stride);
}

type Granularity = "HOUR" | "RESOURCE";

interface PageQuery extends Interval {
  readonly granularity: Granularity;
  readonly cursor: string | undefined;
}

/** Sums of one bucket and id, in the order of `STANDARD_UNITS`. Null: an item has no number. */
interface StandardSum {
  readonly key: Omit<UsageRecord, "measure" | "traces">;
  readonly units: (number | null)[];
}

class SandboxReader {
  #records = 0;
  readonly #http: PlatformHttp;
  readonly #query: WorkspaceQuery;
  readonly #io: WorkspaceIo;
  readonly #standard = new Map<string, StandardSum>();
  #requests = 0;
  #isSized: boolean;

  constructor(http: PlatformHttp, query: WorkspaceQuery, io: WorkspaceIo) {
    this.#http = http;
    this.#isSized = !withoutSize.has(http);
    this.#query = query;
    this.#io = io;
  }

  async resources(range: Interval): Promise<number> {
    let found = 0;
    for (const part of partsOf(range, LONGEST)) {
      for await (const items of this.#items(part, "RESOURCE")) found += items.length;
    }
    return found;
  }

  async readHours(range: Interval, grid: number): Promise<void> {
    for (const part of partsOf(range, LONGEST)) {
      for await (const items of this.#items(part, "HOUR"))
        this.#pass(items, (start) => floorToGrid(start, grid));
    }
  }

  async readSums(range: Interval): Promise<void> {
    for (const part of partsOf(range, LONGEST)) {
      for await (const items of this.#items(part, "RESOURCE")) this.#pass(items, () => range.start);
    }
  }

  /** Passes the standard units, which are known only now: any later item of a bucket may lack them. */
  end(stride: Stride): { stride: Stride; records: number } {
    this.#io.onRecords(
      [...this.#standard.values()].flatMap(({ key, units }) =>
        STANDARD_UNITS.flatMap((measure, i) => {
          const traces = units[i] ?? null;
          return traces === null ? [] : [{ ...key, measure, traces }];
        }),
      ),
    );
    return { stride, records: this.#records };
  }

  #pass(items: readonly Item[], bucketOf: (start: number) => number): void {
    const { groupBy, workspaceId } = this.#query;
    this.#records += items.length;
    this.#io.onRecords(
      items.flatMap(({ resourceId, start, units, standard }) => {
        const bucketStart = bucketOf(start);
        const dimensionId = groupBy === "workspace" ? workspaceId : resourceId;
        const key = { bucketStart, workspaceId, dimensionId, dimensionName: null };
        const id = `${bucketStart} ${dimensionId}`;
        const before = this.#standard.get(id)?.units;
        const sums = standard.map((unit, i) => {
          const sum = before === undefined ? 0 : (before[i] ?? null);
          return sum === null || unit === null ? null : sum + unit;
        });
        this.#standard.set(id, { key, units: sums });
        return CHARGED.map((measure, i) => ({ ...key, measure, traces: units[i] as number }));
      }),
    );
  }

  /** Other pages may follow an empty page (docs/platform.md, Sandbox costs). */
  async *#items(range: Interval, granularity: Granularity): AsyncGenerator<Item[], void, undefined> {
    const seen = new Seen(range, granularity);
    const cursors = new Set<string>();
    for (let cursor: string | undefined, nth = 0; ; ) {
      const { response, page } = await this.#page({ ...range, granularity, cursor });
      try {
        yield page.items.map((item) => fromWireItem(item, nth++, { seen, onRefused: this.#io.onRefused }));
      } catch (error) {
        throw responseError(error, response);
      }
      const next = page.next_cursor;
      if (next === null) return;
      if (cursors.has(next))
        throw responseError(foreignError("its pages have no end: a cursor comes again"), response);
      if (this.#requests >= MOST_PAGES) throw responseError(tooManyPagesError(MOST_PAGES), response);
      cursors.add(next);
      cursor = next;
    }
  }

  async #page(requested: PageQuery) {
    const { sendMore } = this.#io;
    const send = () => this.#send(requested);
    const page = () => (this.#requests++ === 0 || sendMore === undefined ? send() : sendMore(send));
    try {
      return await page();
    } catch (error) {
      if (requested.cursor !== undefined && isRefusal(error, [400, 404, 410, 422])) throw cursorError(error);
      // A server may refuse the page size without naming it. A request without a size was refused for another reason.
      if (!this.#isSized || !isRefusal(error, [400, 422])) throw error;
      this.#isSized = false;
      const found = await page();
      withoutSize.add(this.#http);
      return found;
    }
  }

  async #send({ start, end, granularity, cursor }: PageQuery) {
    const query = new URLSearchParams({
      start_time: toWireTime(start),
      end_time: toWireTime(end),
      granularity,
      ...(this.#isSized ? { page_size: String(PAGE_SIZE) } : {}),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const { workspaceId } = this.#query;
    const response = await this.#http.get({ path: PATH, query, workspaceId, signal: this.#io.signal });
    return { response, page: await readJson(response, pageSchema) };
  }
}

function isRefusal(error: unknown, statuses: readonly number[]): error is PlatformError {
  return error instanceof PlatformError && statuses.includes(error.status ?? 0);
}

/** The first page arrived, so the cursor must be wrong. Reading fewer pages may end before their cursors expire. */
function cursorError({ method, url, message }: PlatformError): PlatformError {
  return new PlatformError({
    code: "response_too_large",
    message: `The server refused the next page, so its cursor may have ended: ${message}`,
    next: "Fewer days are requested at once. If one day alone is refused, its cursors end too soon: ask the people who run the server.",
    method,
    url,
  });
}

const CHARGED = ["lcu", "lsu"] as const satisfies Measure[];

interface Item {
  readonly resourceId: string;
  readonly start: number;
  readonly units: readonly number[];
  /** Whole millionths, in the order of `STANDARD_UNITS`. Null: not available. */
  readonly standard: readonly (number | null)[];
}

/** Has a bit for each hour of each resource seen so far, because a repeated page would be counted twice. */
class Seen {
  readonly #range: Interval;
  readonly #step: number;
  readonly #bits = new Map<string, Uint8Array>();

  constructor(range: Interval, granularity: Granularity) {
    this.#range = range;
    this.#step = granularity === "HOUR" ? HOUR_MS : range.end - range.start;
  }

  fits(start: number): boolean {
    return (
      start >= this.#range.start && start < this.#range.end && (start - this.#range.start) % this.#step === 0
    );
  }

  note(resourceId: string, start: number): boolean {
    const at = (start - this.#range.start) / this.#step;
    const bits = this.#bits.get(resourceId) ?? new Uint8Array(LONGEST / HOUR_MS / 8);
    this.#bits.set(resourceId, bits);
    const bit = 1 << (at % 8);
    const isNew = ((bits[at >> 3] as number) & bit) === 0;
    bits[at >> 3] = (bits[at >> 3] as number) | bit;
    return isNew;
  }
}

const NOT_UNITS = "not a decimal from 0 on with at most six digits after the point";

function fromWireItem(
  wire: unknown,
  nth: number,
  { seen, onRefused }: { seen: Seen; onRefused: WorkspaceIo["onRefused"] },
): Item {
  const item = (typeof wire === "object" && wire !== null ? wire : {}) as Record<string, unknown>;
  const refuse = refuserOf(item, `item ${nth}`, `items.${nth}`);
  const textOf = (field: string): string => {
    const given = item[field];
    return typeof given === "string" && given !== "" ? given : refuse(field, "not a text");
  };
  const resourceId =
    fromWireId(textOf("resource_id")) ?? refuse("resource_id", "which cannot be kept as an id");
  const start = fromWireTime(textOf("period_start")) ?? refuse("period_start", "not a timestamp");
  if (!seen.fits(start)) refuse("period_start", "which is no hour of the range that was asked for");
  const units = CHARGED.map((measure) => {
    if (item[measure] === null) refuse(measure, "so what was used is not available yet");
    return fromUnitText(textOf(measure)) ?? refuse(measure, NOT_UNITS);
  });
  if (!seen.note(resourceId, start)) refuse("resource_id", "which comes twice for the same time");
  // Their form is not documented further, so a wrong one must not cost the other units.
  const standard = STANDARD_UNITS.map((measure) => {
    const given = item[measure] ?? null;
    const unit = typeof given === "string" ? fromUnitText(given) : undefined;
    if (unit === undefined && given !== null)
      onRefused?.(`items.${nth}.${measure} is ${describeValue(given)}, ${NOT_UNITS}`);
    return unit ?? null;
  });
  return { resourceId, start, units, standard };
}

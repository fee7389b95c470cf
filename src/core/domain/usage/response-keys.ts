import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { Window } from "../time/window.ts";
import { MEASURES, type Measure } from "./meter.ts";
import { type GroupBy, NO_ID, type UsageRecord } from "./record.ts";

/** First and last bucket that carry a name, in hours since 1970. */
interface NameSpan {
  readonly name: string;
  firstHour: number;
  lastHour: number;
}

export interface ResponseKey {
  readonly measure: Measure;
  readonly workspace: number;
  readonly dimensionId: string;
  readonly firstHour: number;
  readonly lastHour: number;
  readonly names: readonly Readonly<NameSpan>[];
}

type OpenKey = { -readonly [Name in keyof ResponseKey]: ResponseKey[Name] } & { names: NameSpan[] };

const SCRATCH = Buffer.allocUnsafeSlow(4096);

/** Copies a substring, which would otherwise keep its whole source text in memory. */
function ownCopy(text: string): string {
  // A character takes at most three bytes.
  if (3 * text.length > SCRATCH.length) return Buffer.from(text).toString();
  return SCRATCH.toString("utf8", 0, SCRATCH.write(text));
}

export interface Requested {
  readonly window: Window;
  readonly groupBy: GroupBy;
  readonly workspaceIds: readonly string[];
  /** False drops every name (`USAGE_USER_EMAIL`). */
  readonly withNames?: boolean;
}

export interface NumberedRow {
  /** Number of the record's key, or its series id in the store. */
  id: number;
  bucketHour: number;
  traces: number;
}

export interface Misfit {
  readonly code: "bucket_misplaced" | "bucket_missing" | "workspace_unasked" | "id_too_long" | "ids_too_many";
  readonly message: string;
}

/** Limit of the constraint `entity_external_id_length`, in UTF-8 bytes. */
const MAX_ID_BYTES = 1000;
/** Names of one key are searched one by one, so their number is limited. */
const MAX_NAMES_OF_KEY = 1000;
/** Limit on the characters of ids and names, as an average per key. A UUID and an address have about 70. */
const CHARACTERS_OF_KEY = 200;

/**
 * Numbers the keys of a response, JSON or CSV, in order of appearance, and checks that each record fits its request.
 * Memory grows with the keys, not with the records.
 */
export class KeyNumbering {
  /** False once a key's buckets come out of order or twice. */
  isAscending = true;
  mostNames = 0;
  moreNames = 0;
  #characters = 0;

  readonly #keys: OpenKey[] = [];
  readonly #window: Window;
  readonly #isByWorkspace: boolean;
  readonly #withNames: boolean;
  readonly #workspaceIds: readonly string[];
  readonly #workspaces: ReadonlyMap<string, number>;
  readonly #index: Map<string, number>[];
  #checked: number | null | undefined;

  constructor(requested: Requested) {
    const { window, groupBy, workspaceIds, withNames = true } = requested;
    this.#window = window;
    this.#isByWorkspace = groupBy === "workspace";
    this.#withNames = withNames;
    this.#workspaceIds = workspaceIds;
    this.#workspaces = new Map(workspaceIds.map((id, index) => [id, index]));
    this.#index = workspaceIds.flatMap(() => MEASURES.map(() => new Map()));
  }

  numberOf(record: UsageRecord): number | Misfit {
    const { bucketStart } = record;
    if (bucketStart !== this.#checked) {
      const misfit = bucketMisfit(bucketStart, this.#window);
      if (misfit !== undefined) return misfit;
      this.#checked = bucketStart;
    }
    const { dimensionId, dimensionName, measure: counted } = record;
    const named = this.#isByWorkspace && dimensionId !== NO_ID ? dimensionId : record.workspaceId;
    const isOnly = named === null && this.#workspaceIds.length === 1;
    const workspace = isOnly ? 0 : this.#workspaces.get(named ?? NO_ID);
    if (workspace === undefined) {
      return { code: "workspace_unasked", message: `workspace ${named ?? "(none)"} was not requested` };
    }
    // A record by workspace that names none belongs to the only requested workspace.
    const id = this.#isByWorkspace ? (this.#workspaceIds[workspace] as string) : dimensionId;
    const hour = (bucketStart ?? this.#window.start) / HOUR_MS;
    const number = this.#find(workspace, counted ?? "traces", id, hour);
    if (typeof number !== "number") return number;
    const key = this.#keys[number] as OpenKey;
    if (hour > key.lastHour) key.lastHour = hour;
    else this.isAscending = false;
    if (hour < key.firstHour) key.firstHour = hour;
    if (dimensionName !== null && this.#withNames) this.#widenName(key, dimensionName, hour);
    return number;
  }

  /** The index of a key is its number. */
  get keys(): readonly ResponseKey[] {
    return this.#keys;
  }

  /** True if ids and names take more memory, or names more time, than `most` keys may take. */
  isBeyond(most: number): boolean {
    const isLarge = this.#keys.length + this.moreNames > most || this.#characters > most * CHARACTERS_OF_KEY;
    return isLarge || this.mostNames > MAX_NAMES_OF_KEY;
  }

  #find(workspace: number, measure: Measure, id: string, hour: number): number | Misfit {
    const index = this.#index[workspace * MEASURES.length + MEASURES.indexOf(measure)] as Map<string, number>;
    const known = index.get(id);
    if (known !== undefined) return known;
    if (Buffer.byteLength(id) > MAX_ID_BYTES) {
      const message = `an id is longer than ${MAX_ID_BYTES} bytes: ${id.slice(0, 40)}...`;
      return { code: "id_too_long", message };
    }
    const dimensionId = ownCopy(id);
    this.#characters += id.length;
    // The key's first bucket must count as ascending.
    const key = { measure, workspace, dimensionId, firstHour: hour, lastHour: hour - 1, names: [] };
    const number = this.#keys.push(key) - 1;
    index.set(dimensionId, number);
    return number;
  }

  #widenName(key: OpenKey, name: string, hour: number): void {
    for (const span of key.names) {
      if (span.name !== name) continue;
      if (hour < span.firstHour) span.firstHour = hour;
      if (hour > span.lastHour) span.lastHour = hour;
      return;
    }
    const span = { name: ownCopy(name), firstHour: hour, lastHour: hour };
    this.#characters += name.length;
    if (key.names.length > 0) this.moreNames++;
    // Most keys have one name, and `push` reserves room for seventeen.
    if (key.names.length === 0) key.names = [span];
    else key.names.push(span);
    this.mostNames = Math.max(this.mostNames, key.names.length);
  }
}

function bucketMisfit(bucketStart: number | null, { start, end, stride }: Window): Misfit | undefined {
  const bucketMs = STRIDE_MS[stride];
  if (bucketStart === null) {
    if (end - start === bucketMs) return undefined;
    return { code: "bucket_missing", message: "the bucket is empty, but the window has several" };
  }
  if (bucketStart >= start && bucketStart < end && (bucketStart - start) % bucketMs === 0) return undefined;
  const bucket = new Date(bucketStart).toISOString();
  return {
    code: "bucket_misplaced",
    message: `bucket ${bucket} is outside the window or off the ${stride} grid`,
  };
}

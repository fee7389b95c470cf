import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { Window } from "../time/window.ts";
import { MEASURES, type Measure } from "./meter.ts";
import { type GroupBy, NO_ID, type UsageRecord } from "./record.ts";

/** The request, as far as it decides which records fit. */
export interface Requested {
  readonly window: Window;
  readonly groupBy: GroupBy;
  readonly workspaceIds: readonly string[];
  /** False drops every name (`USAGE_USER_EMAIL`). */
  readonly withNames?: boolean;
}

/** First and last bucket that carry a name, in hours since 1970. */
interface NameSpan {
  readonly name: string;
  firstHour: number;
  lastHour: number;
}

/** One value of the dimension within one of the requested workspaces, for one measure. */
export interface AnswerKey {
  readonly measure: Measure;
  /** Index into the requested workspaces. */
  readonly workspace: number;
  readonly dimensionId: string;
  /** First and last bucket, in hours since 1970. */
  firstHour: number;
  lastHour: number;
  /** Rarely more than one. */
  names: NameSpan[];
}

/** A record as three numbers. */
export interface NumberedRow {
  /** Of the record's key: its number, or its series id on the way into the store. */
  id: number;
  /** Hours since 1970. */
  bucketHour: number;
  traces: number;
}

/** Why a record does not fit its request. */
export interface Misfit {
  readonly code: "bucket_misplaced" | "bucket_missing" | "workspace_unasked" | "id_too_long";
  readonly message: string;
}

/** Bound of `entity_external_id_length`, in UTF-8 bytes. */
const MAX_ID_BYTES = 1000;
/** Before every bucket, so that the first one of a key ascends. */
const BEFORE_ALL = -(2 ** 31);

/**
 * Numbers the keys of an answer, JSON or CSV, in order of appearance, and checks that each record fits its request. Memory grows
 * with the keys, not with the records.
 */
export class KeyNumbering {
  /** A key's number is its index. */
  readonly keys: AnswerKey[] = [];
  /** False once a key's buckets come out of order or twice. */
  isAscending = true;
  /** Of the key that has most. */
  mostNames = 0;
  /** Names beyond the first of each key. */
  moreNames = 0;

  readonly #window: Window;
  readonly #isByWorkspace: boolean;
  readonly #withNames: boolean;
  readonly #workspaceIds: readonly string[];
  readonly #workspaces: ReadonlyMap<string, number>;
  readonly #index: Map<string, number>[];
  /** The key that last followed each key: answers repeat the order of keys from bucket to bucket. */
  readonly #next: number[] = [];
  #last = 0;
  /** The last bucket that was checked; records of one bucket follow each other. */
  #checked: number | null | undefined;

  constructor({ window, groupBy, workspaceIds, withNames = true }: Requested) {
    this.#window = window;
    this.#isByWorkspace = groupBy === "workspace";
    this.#withNames = withNames;
    this.#workspaceIds = workspaceIds;
    this.#workspaces = new Map(workspaceIds.map((id, index) => [id, index]));
    this.#index = workspaceIds.flatMap(() => MEASURES.map(() => new Map()));
  }

  /** The number of the record's key, or why the record does not fit. A fitting record without a bucket has the window's only one. */
  numberOf(record: UsageRecord): number | Misfit {
    const { bucketStart } = record;
    if (bucketStart !== this.#checked) {
      const misfit = bucketMisfit(bucketStart, this.#window);
      if (misfit !== undefined) return misfit;
      this.#checked = bucketStart;
    }
    const { dimensionId, dimensionName, measure = "traces" } = record;
    const named = this.#isByWorkspace && dimensionId !== NO_ID ? dimensionId : record.workspaceId;
    const isOnly = named === null && this.#workspaceIds.length === 1;
    const workspace = isOnly ? 0 : this.#workspaces.get(named ?? NO_ID);
    if (workspace === undefined) {
      return { code: "workspace_unasked", message: `workspace ${named ?? "(none)"} was not requested` };
    }
    // A record by workspace that names none belongs to the only one requested.
    const id = this.#isByWorkspace ? (this.#workspaceIds[workspace] as string) : dimensionId;
    const hour = (bucketStart ?? this.#window.start) / HOUR_MS;
    const number = this.#find(workspace, measure, id) ?? this.#enter({ workspace, measure, id, hour });
    if (typeof number !== "number") return number;
    this.#next[this.#last] = number;
    this.#last = number;
    const key = this.keys[number] as AnswerKey;
    if (hour > key.lastHour) key.lastHour = hour;
    else {
      this.isAscending = false;
      if (hour < key.firstHour) key.firstHour = hour;
    }
    if (dimensionName !== null && this.#withNames) this.#widenName(key, dimensionName, hour);
    return number;
  }

  #find(workspace: number, measure: Measure, id: string): number | undefined {
    // Comparing with one string costs a fraction of a look-up, which has to hash it first.
    const expected = this.#next[this.#last];
    const key = expected === undefined ? undefined : this.keys[expected];
    const isExpected = key?.dimensionId === id && key.workspace === workspace && key.measure === measure;
    return isExpected ? expected : this.#indexOf(workspace, measure)?.get(id);
  }

  #indexOf(workspace: number, measure: Measure): Map<string, number> | undefined {
    return this.#index[workspace * MEASURES.length + MEASURES.indexOf(measure)];
  }

  #enter(entered: { workspace: number; measure: Measure; id: string; hour: number }): number | Misfit {
    const { workspace, measure, id, hour } = entered;
    if (Buffer.byteLength(id) > MAX_ID_BYTES) {
      const message = `an id is longer than ${MAX_ID_BYTES} bytes: ${id.slice(0, 40)}...`;
      return { code: "id_too_long", message };
    }
    const dimensionId = ownCopy(id);
    const number = this.keys.length;
    this.#indexOf(workspace, measure)?.set(dimensionId, number);
    this.keys.push({ workspace, measure, dimensionId, firstHour: hour, lastHour: BEFORE_ALL, names: [] });
    return number;
  }

  #widenName(key: AnswerKey, name: string, hour: number): void {
    for (const span of key.names) {
      if (span.name !== name) continue;
      if (hour < span.firstHour) span.firstHour = hour;
      if (hour > span.lastHour) span.lastHour = hour;
      return;
    }
    const span = { name: ownCopy(name), firstHour: hour, lastHour: hour };
    if (key.names.length === 0) key.names = [span];
    else {
      key.names.push(span);
      this.moreNames++;
    }
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

/** A substring keeps the whole text it was cut from in memory; a copy does not. */
function ownCopy(text: string): string {
  return Buffer.from(text).toString();
}

import { HOUR_MS, STRIDE_MS } from "../time/stride.ts";
import type { Window } from "../time/window.ts";
import { AnswerKeys, ownCopy } from "./answer-keys.ts";
import { MEASURES } from "./meter.ts";
import { type GroupBy, NO_ID, type UsageRecord } from "./record.ts";

/** The request, as far as it decides which records fit. */
export interface Requested {
  readonly window: Window;
  readonly groupBy: GroupBy;
  readonly workspaceIds: readonly string[];
  /** False drops every name (`USAGE_USER_EMAIL`). */
  readonly withNames?: boolean;
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
/** What a record without a measure counts. */
const TRACES = MEASURES.indexOf("traces");

/**
 * Numbers the keys of an answer, JSON or CSV, in order of appearance, and checks that each record fits its request. Memory grows
 * with the keys, not with the records.
 */
export class KeyNumbering {
  readonly keys = new AnswerKeys();
  /** False once a key's buckets come out of order or twice. */
  isAscending = true;

  readonly #window: Window;
  readonly #isByWorkspace: boolean;
  readonly #withNames: boolean;
  readonly #workspaceIds: readonly string[];
  readonly #workspaces: ReadonlyMap<string, number>;
  readonly #index: Map<string, number>[];
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
    const { dimensionId, dimensionName, measure: counted } = record;
    const named = this.#isByWorkspace && dimensionId !== NO_ID ? dimensionId : record.workspaceId;
    const isOnly = named === null && this.#workspaceIds.length === 1;
    const workspace = isOnly ? 0 : this.#workspaces.get(named ?? NO_ID);
    if (workspace === undefined) {
      return { code: "workspace_unasked", message: `workspace ${named ?? "(none)"} was not requested` };
    }
    // A record by workspace that names none belongs to the only one requested.
    const id = this.#isByWorkspace ? (this.#workspaceIds[workspace] as string) : dimensionId;
    const hour = (bucketStart ?? this.#window.start) / HOUR_MS;
    const measure = counted === undefined ? TRACES : MEASURES.indexOf(counted);
    const { keys } = this;
    // Comparing with one string costs a fraction of a look-up, which has to hash it first.
    const expected = keys.length === 0 ? undefined : keys.nextOf(this.#last);
    const isExpected = expected !== undefined && keys.is(expected, workspace, measure, id);
    const number = isExpected ? expected : this.#find(workspace, measure, id, hour);
    if (typeof number !== "number") return number;
    keys.setNext(this.#last, number);
    this.#last = number;
    if (!keys.widen(number, hour)) this.isAscending = false;
    if (dimensionName !== null && this.#withNames) keys.widenName(number, dimensionName, hour);
    return number;
  }

  #find(workspace: number, measure: number, id: string, hour: number): number | Misfit {
    const index = this.#index[workspace * MEASURES.length + measure] as Map<string, number>;
    const known = index.get(id);
    if (known !== undefined) return known;
    if (Buffer.byteLength(id) > MAX_ID_BYTES) {
      const message = `an id is longer than ${MAX_ID_BYTES} bytes: ${id.slice(0, 40)}...`;
      return { code: "id_too_long", message };
    }
    const dimensionId = ownCopy(id);
    const number = this.keys.enter(workspace, measure, dimensionId, hour);
    index.set(dimensionId, number);
    return number;
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

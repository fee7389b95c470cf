import { HOUR_MS, type Stride } from "../time/stride.ts";
import type { UsageRecord } from "./record.ts";
import { RecordColumns } from "./record-columns.ts";
import {
  KeyNumbering,
  type Misfit,
  type NumberedRow,
  type Requested,
  type ResponseKey,
} from "./response-keys.ts";

/** Why a response cannot be used. `grid`: request one stride finer. `record`: split the request, down to one bucket. */
export interface ResponseProblem {
  readonly kind: "grid" | "record";
  readonly code: Misfit["code"] | "stride_differs";
  readonly message: string;
}

export interface ResponseRow extends NumberedRow {
  workspace: number;
}

/**
 * The most ids (times their measures) of one response, since each takes about 1 KB of memory until it is stored. No workspace
 * has as many users, projects or keys.
 */
const MOST_KEYS = 250_000;

/**
 * Collects the records of one response by key. Store them only if the client has proved the response whole and `problem`
 * returns undefined.
 */
export class ResponseCollector {
  /** Sum of all traces received; the stored sum must equal it. For deployments: the sum of all measures. */
  traces = 0;
  records = 0;
  /** True once the response has too many ids or names. Later records are ignored. */
  isFull = false;

  readonly #requested: Requested;
  readonly #numbering: KeyNumbering;
  readonly #columns = new RecordColumns();
  readonly #mostKeys: number;
  #problem: ResponseProblem | undefined;

  constructor(requested: Requested, mostKeys = MOST_KEYS) {
    this.#requested = requested;
    this.#mostKeys = mostKeys;
    this.#numbering = new KeyNumbering(requested);
  }

  get keys(): readonly ResponseKey[] {
    return this.#numbering.keys;
  }

  add(records: readonly UsageRecord[]): void {
    for (const record of records) this.#add(record);
  }

  #add(record: UsageRecord): void {
    this.records++;
    if (this.isFull) return;
    const key = this.#numbering.numberOf(record);
    if (typeof key !== "number") {
      this.#note(key);
      return;
    }
    const hour = (record.bucketStart ?? this.#requested.window.start) / HOUR_MS;
    this.#columns.add(key, hour, record.traces);
    this.traces += record.traces;
    this.isFull = this.#numbering.isBeyond(this.#mostKeys);
  }

  #note(misfit: Misfit): void {
    const kind = misfit.code === "bucket_misplaced" ? "grid" : "record";
    // A wrong grid explains misplaced buckets, so it replaces the problem of one record.
    if (this.#problem === undefined || (this.#problem.kind === "record" && kind === "grid"))
      this.#problem = { kind, ...misfit };
  }

  /** Returns why this response cannot be used. `stride`: as the response announces it; undefined if not one of the five. */
  problem(stride: Stride | undefined): ResponseProblem | undefined {
    if (this.isFull)
      return {
        kind: "record",
        code: "ids_too_many",
        message: `the response has more ids and names than are read at once (${this.#mostKeys.toLocaleString("en-US")} ids)`,
      };
    const planned = this.#requested.window.stride;
    if (stride !== planned) {
      const message = `planned ${planned} buckets, the response's stride is ${stride ?? "none of the known ones"}`;
      return { kind: "grid", code: "stride_differs", message };
    }
    if (this.#problem === undefined && !Number.isSafeInteger(this.traces)) {
      return { kind: "record", code: "bucket_missing", message: "the sum of all traces is beyond 2^53" };
    }
    return this.#problem;
  }

  named(): Set<number> {
    return new Set(this.keys.map(({ workspace }) => workspace));
  }

  /**
   * Yields the rows ordered by id of the key and bucket, and adds up records with the same key and bucket. `ids[number]` is the
   * id of a key's rows; default: the key's number. All rows are one reused object.
   */
  *rows(ids?: ArrayLike<number>): Generator<ResponseRow, void, undefined> {
    const byId = [...this.keys.keys()];
    if (ids !== undefined) byId.sort((a, b) => (ids[a] as number) - (ids[b] as number));
    const { hours, traces, order, firsts } = this.#columns.byKey(
      this.keys.length,
      this.#numbering.isAscending,
    );
    const out: ResponseRow = { id: 0, workspace: 0, bucketHour: 0, traces: 0 };
    for (const key of byId) {
      out.id = ids === undefined ? key : (ids[key] as number);
      out.workspace = (this.keys[key] as ResponseKey).workspace;
      const after = firsts[key + 1] as number;
      let sum = 0;
      for (let i = firsts[key] as number; i < after; i++) {
        const row = order[i] as number;
        sum += traces[row] as number;
        const hour = hours[row] as number;
        if (i + 1 < after && hours[order[i + 1] as number] === hour) continue;
        out.bucketHour = hour;
        out.traces = sum;
        yield out;
        sum = 0;
      }
    }
  }
}

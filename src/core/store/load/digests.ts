import { sql } from "kysely";
import { intersect } from "../../domain/time/intervals.ts";
import { HOUR_MS, STRIDE_MS } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import { DIGEST_BYTES, WindowDigest } from "../../domain/usage/digest.ts";
import type { ResponseRow } from "../../domain/usage/response.ts";
import { isBeforeDataStart, type RequestedTime } from "../catalog/data-start.ts";
import { type CoverageRow, overlaps } from "../catalog/scope-time.ts";
import { type Database, query } from "../db/query.ts";

export interface OverlappedRow extends CoverageRow {
  /** Digest of the part within the window; null: unknown. */
  readonly digest: Buffer | null;
}

/** Time in which a response may differ from the store. Outside this time, its rows are the stored ones. */
interface Suspect {
  readonly scopeIds: readonly number[];
  readonly period: Interval;
}

export interface StoredWindow {
  /** Epoch of the stored digests. A change of records outside of loads begins a new epoch, which voids them. */
  readonly epoch: number;
  readonly isBeforeDataStart: boolean;
  readonly withdrawn: readonly number[];
  readonly failed: readonly number[];
  readonly overlapped: readonly OverlappedRow[];
}

/** Reads all in one statement, so that it is of one moment. The caller holds the locks of the scopes. */
export async function readStored(
  db: Database,
  { scopeIds, ...requested }: RequestedTime & { readonly scopeIds: readonly number[] },
): Promise<StoredWindow> {
  const period = requested.window;
  const window = sql`tstzrange(${new Date(period.start)}::timestamptz, ${new Date(period.end)}::timestamptz)`;
  const whole = sql`tstzrange(c.period_start, c.period_end)`;
  const isOverlapping = overlaps({ scopeIds, period });
  type OfWindow = Omit<StoredWindow, "overlapped">;
  const rows = await query<OfWindow & (OverlappedRow | { scope_id: null })>(db)`
    select e.last_value as epoch, ${isBeforeDataStart(requested)} as "isBeforeDataStart",
           array(select distinct scope_id from usage.withdrawal where final and ${isOverlapping}) as withdrawn,
           array(select distinct scope_id from usage.failure where ${isOverlapping}) as failed,
           c.scope_id, c.period_start, c.period_end, c.final, c.fetch_number, c.fetched_at,
           case when c.digest_epoch = e.last_value then usage.digest_part(c.digest, ${whole}, ${whole} * ${window}) end as digest
    from usage.digest_epoch e
    left join (select * from usage.coverage where ${isOverlapping}) c on true
  `;
  return {
    ...(rows[0] as OfWindow),
    overlapped: rows.filter((row): row is OfWindow & OverlappedRow => row.scope_id !== null),
  };
}

export class ResponseDigests {
  readonly #window: Window;
  readonly #ofScope: ReadonlyMap<number, WindowDigest>;
  readonly #ofWorkspace: readonly WindowDigest[];
  rows = 0;

  constructor(window: Window, scopeIds: readonly number[]) {
    this.#window = window;
    this.#ofWorkspace = scopeIds.map(() => new WindowDigest(window));
    this.#ofScope = new Map(scopeIds.map((scopeId, i) => [scopeId, this.#ofWorkspace[i] as WindowDigest]));
  }

  add(row: ResponseRow): void {
    this.rows++;
    this.#ofWorkspace[row.workspace]?.add(row);
  }

  traced(scopeId: number, part: Interval): Interval[] {
    return intersect(this.#ofScope.get(scopeId)?.traced() ?? [], [part]);
  }

  of(scopeId: number, part: Interval): Buffer | undefined {
    return this.#ofScope.get(scopeId)?.of(part);
  }

  suspect(scopeIds: readonly number[], stored: readonly OverlappedRow[]): Suspect | undefined {
    const { start, end, stride } = this.#window;
    const bucketMs = STRIDE_MS[stride];
    const period = { start: end, end: start };
    const suspects = scopeIds.filter((scopeId) => {
      const buckets = this.#differing(
        scopeId,
        stored.filter((row) => row.scope_id === scopeId),
      );
      if (buckets === undefined) return false;
      period.start = Math.min(period.start, start + buckets.first * bucketMs);
      period.end = Math.max(period.end, start + (buckets.last + 1) * bucketMs);
      return true;
    });
    return suspects.length === 0 ? undefined : { scopeIds: suspects, period };
  }

  #differing(scopeId: number, stored: readonly OverlappedRow[]): { first: number; last: number } | undefined {
    const { start, stride } = this.#window;
    const responded = this.of(scopeId, this.#window) as Buffer;
    const known = new Uint8Array(responded.length / DIGEST_BYTES);
    for (const { digest, period_start } of stored) {
      if (digest === null) continue;
      const first = (Math.max(period_start.getTime(), start) - start) / STRIDE_MS[stride];
      for (let at = 0; at < digest.length; at += DIGEST_BYTES) {
        const from = first * DIGEST_BYTES + at;
        const isSame = digest.compare(responded, from, from + DIGEST_BYTES, at, at + DIGEST_BYTES) === 0;
        if (isSame) known[first + at / DIGEST_BYTES] = 1;
      }
    }
    const first = known.indexOf(0);
    return first < 0 ? undefined : { first, last: known.lastIndexOf(0) };
  }
}

export function* suspectRows(
  rows: Iterable<ResponseRow>,
  { scopeIds, period }: Suspect,
  scopeOfWorkspace: readonly number[],
): Generator<ResponseRow, void, undefined> {
  const suspects = new Set(scopeIds);
  const isSuspect = scopeOfWorkspace.map((scopeId) => suspects.has(scopeId));
  const [first, after] = [period.start / HOUR_MS, period.end / HOUR_MS];
  for (const row of rows) {
    if (isSuspect[row.workspace] && row.bucketHour >= first && row.bucketHour < after) yield row;
  }
}

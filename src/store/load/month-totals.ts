import type { PoolClient } from "pg";
import { HOUR_MS } from "../../domain/time/stride.ts";
import type { NumberedRow } from "../../domain/usage/answer-keys.ts";

/** Totals of each series by calendar month (usage.monthly_total). The load that changes the records keeps them. */

/** A calendar month: its position among the counted ones, its first day, its ends in hours since 1970. */
interface Month {
  readonly index: number;
  readonly start: string;
  readonly first: number;
  readonly after: number;
}

/**
 * Counts rows by series and month on their way to COPY. Summing them up in Postgres would take an eighth of the load's
 * time. Rows come in key order.
 */
export class MonthCounter {
  readonly #seriesIds: number[] = [];
  readonly #monthIndices: number[] = [];
  readonly #traces: (number | bigint)[] = [];
  readonly #records: number[] = [];
  readonly #months: Month[] = [];
  #seriesId = -1;
  #month: Month = { index: -1, start: "", first: 0, after: 0 };

  add({ id: seriesId, bucketHour, traces }: NumberedRow): void {
    const isOtherMonth = bucketHour >= this.#month.after || bucketHour < this.#month.first;
    if (isOtherMonth) this.#month = this.#monthAt(bucketHour);
    const last = this.#seriesIds.length - 1;
    if (isOtherMonth || seriesId !== this.#seriesId) {
      this.#seriesId = seriesId;
      this.#seriesIds.push(seriesId);
      this.#monthIndices.push(this.#month.index);
      this.#traces.push(traces);
      this.#records.push(1);
      return;
    }
    this.#traces[last] = added(this.#traces[last] ?? 0, traces);
    this.#records[last] = (this.#records[last] ?? 0) + 1;
  }

  /** A window has few months, and each series passes through them again. */
  #monthAt(bucketHour: number): Month {
    const known = this.#months.find(({ first, after }) => bucketHour >= first && bucketHour < after);
    if (known !== undefined) return known;
    const month = { index: this.#months.length, ...monthOf(bucketHour) };
    this.#months.push(month);
    return month;
  }

  /** Adds the counts to the stored totals. */
  async keep(client: PoolClient): Promise<void> {
    if (this.#seriesIds.length === 0) return;
    await client.query(
      `MERGE INTO usage.monthly_total t
       USING (
         SELECT series_id, ($5::date[])[1 + i] AS month_start, traces, records
         FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::integer[]) u (series_id, i, traces, records)
       ) n
       ON t.series_id = n.series_id AND t.month_start = n.month_start
       WHEN MATCHED THEN UPDATE SET traces = t.traces + n.traces, records = t.records + n.records
       WHEN NOT MATCHED THEN INSERT (series_id, month_start, traces, records)
         VALUES (n.series_id, n.month_start, n.traces, n.records)`,
      // As literals: the driver escapes each element of an array, which took as long as the insert itself.
      [
        ...[this.#seriesIds, this.#monthIndices, this.#traces, this.#records].map((all) => `{${all.join()}}`),
        this.#months.map(({ start }) => start),
      ],
    );
  }
}

/** Each count is a safe integer, but their sum may not be. */
function added(sum: number | bigint, traces: number): number | bigint {
  if (typeof sum === "bigint") return sum + BigInt(traces);
  const next = sum + traces;
  return Number.isSafeInteger(next) ? next : BigInt(sum) + BigInt(traces);
}

/** The month of an hour since 1970. */
function monthOf(bucketHour: number): Omit<Month, "index"> {
  const date = new Date(bucketHour * HOUR_MS);
  const at = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months) / HOUR_MS;
  return { start: `${date.toISOString().slice(0, 7)}-01`, first: at(0), after: at(1) };
}

/**
 * Counts the months of the changed records again, from the records. Adding the changes instead would keep a wrong total
 * wrong, or fail the very load that repairs its records.
 */
export function keepMonthsOf(change: string): string {
  return `
    MERGE INTO usage.monthly_total t
    USING (
      SELECT m.series_id, m.month_start, sum(r.traces) AS traces, count(r.series_id) AS records
      FROM (SELECT DISTINCT series_id, usage.month_of(bucket_start) AS month_start FROM ${change}) m
      LEFT JOIN usage.dated_record r
        ON r.series_id = m.series_id AND r.bucket_start >= m.month_start
       AND r.bucket_start < (m.month_start + interval '1 month')::date
      GROUP BY 1, 2
    ) c ON t.series_id = c.series_id AND t.month_start = c.month_start
    WHEN MATCHED AND c.records = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET traces = c.traces, records = c.records
    WHEN NOT MATCHED AND c.records > 0 THEN INSERT (series_id, month_start, traces, records)
      VALUES (c.series_id, c.month_start, c.traces, c.records)`;
}

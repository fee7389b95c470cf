import { once } from "node:events";
import type { PoolClient } from "pg";
import { from as copyFrom } from "pg-copy-streams";

const BUFFER_BYTES = 64 * 1024;
const HEADER = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const TRAILER = Buffer.from([0xff, 0xff]);
/** 2000-01-01, Postgres's epoch, in hours since 1970. */
const POSTGRES_EPOCH_HOURS = 262_968;
const MICROSECONDS_PER_HOUR = 3_600_000_000n;

type BucketType = "timestamptz" | "date";

interface CopiedRow {
  readonly seriesId: number;
  readonly bucketHour: number;
  readonly traces: number;
}

/**
 * Writes rows (series_id integer, bucket_start timestamptz or date, traces bigint) with COPY in binary, in 64 KiB
 * buffers: the fastest of the ways that were measured. `rows` come in key order; each is encoded when Postgres has taken
 * what went before, so that no more than two buffers are ever in memory. Returns their number.
 */
export async function copyRows(
  client: PoolClient,
  target: { table: string; bucketType: BucketType; rows: Iterable<CopiedRow> },
): Promise<number> {
  const stream = client.query(
    copyFrom(`COPY ${target.table} (series_id, bucket_start, traces) FROM STDIN (FORMAT binary)`),
  );
  const done = once(stream, "finish");
  // A failure between two writes must not be an unhandled one before it is awaited below.
  done.catch(() => {});
  const encoded = encodeRows(target.bucketType, target.rows);
  let next = encoded.next();
  for (; next.done !== true; next = encoded.next()) {
    if (!stream.write(next.value)) await Promise.race([once(stream, "drain"), done]);
  }
  stream.end();
  await done;
  return next.value;
}

/** Buffers of 30 or 34 bytes a row; returns the number of rows. */
function* encodeRows(bucketType: BucketType, rows: Iterable<CopiedRow>): Generator<Buffer, number> {
  const bucketBytes = bucketType === "date" ? 4 : 8;
  const rowBytes = 2 + 3 * 4 + 4 + bucketBytes + 8;
  let buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let at = HEADER.copy(buffer);
  let count = 0;
  for (const { seriesId, bucketHour, traces } of rows) {
    if (at + rowBytes > BUFFER_BYTES) {
      yield buffer.subarray(0, at);
      buffer = Buffer.allocUnsafe(BUFFER_BYTES);
      at = 0;
    }
    at = buffer.writeInt16BE(3, at);
    at = buffer.writeInt32BE(4, at);
    at = buffer.writeInt32BE(seriesId, at);
    at = buffer.writeInt32BE(bucketBytes, at);
    const hours = bucketHour - POSTGRES_EPOCH_HOURS;
    if (bucketType === "date") at = buffer.writeInt32BE(hours / 24, at);
    else at = buffer.writeBigInt64BE(BigInt(hours) * MICROSECONDS_PER_HOUR, at);
    at = buffer.writeInt32BE(8, at);
    // Counts are safe integers: the high word is a whole number below 2^21.
    at = buffer.writeInt32BE(Math.floor(traces / 2 ** 32), at);
    at = buffer.writeUInt32BE(traces % 2 ** 32, at);
    count++;
  }
  yield buffer.subarray(0, at);
  yield TRAILER;
  return count;
}

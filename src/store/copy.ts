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
type Visit = (seriesId: number, bucketHour: number, traces: number) => void;

/**
 * Writes rows (series_id integer, bucket_start timestamptz or date, traces bigint) with COPY in binary, in 64 KiB
 * buffers: the fastest of the ways that were measured. `each` must visit the rows in key order. Returns their number.
 */
export async function copyRows(
  client: PoolClient,
  target: { table: string; bucketType: BucketType; each: (visit: Visit) => void },
): Promise<number> {
  const buffers = encodeRows(target.bucketType, target.each);
  const stream = client.query(
    copyFrom(`COPY ${target.table} (series_id, bucket_start, traces) FROM STDIN (FORMAT binary)`),
  );
  const done = once(stream, "finish");
  // A failure between two writes must not be an unhandled one before it is awaited below.
  done.catch(() => {});
  for (const buffer of buffers.list) {
    if (!stream.write(buffer)) await Promise.race([once(stream, "drain"), done]);
  }
  stream.end();
  await done;
  return buffers.rows;
}

/** 30 or 34 bytes a row: a million rows wait in 34 MB until Postgres took them. */
function encodeRows(bucketType: BucketType, each: (visit: Visit) => void): { list: Buffer[]; rows: number } {
  const list: Buffer[] = [];
  const bucketBytes = bucketType === "date" ? 4 : 8;
  const rowBytes = 2 + 3 * 4 + 4 + bucketBytes + 8;
  let buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let at = HEADER.copy(buffer);
  let rows = 0;
  each((seriesId, bucketHour, traces) => {
    if (at + rowBytes > BUFFER_BYTES) {
      list.push(buffer.subarray(0, at));
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
    rows++;
  });
  list.push(buffer.subarray(0, at), TRAILER);
  return { list, rows };
}

import { once } from "node:events";
import type { PoolClient } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { NumberedRow } from "../../domain/usage/response-keys.ts";

const BUFFER_BYTES = 64 * 1024;
const HEADER = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const TRAILER = Buffer.from([0xff, 0xff]);
/** 2000-01-01, Postgres's epoch, in hours since 1970. */
const POSTGRES_EPOCH_HOURS = 262_968;
const MICROSECONDS_PER_HOUR = 3_600_000_000n;

type BucketType = "timestamptz" | "date";

interface CopyTarget<Row extends NumberedRow> {
  readonly table: string;
  readonly idColumn?: "series_id" | "key";
  readonly bucketType: BucketType;
  readonly passing?: { add(row: Row): void } | undefined;
}

/**
 * Writes rows with COPY in binary, in 64 KiB buffers, the fastest way measured. `rows` are in key order. Each buffer is encoded
 * after Postgres has taken the previous one, so at most two are in memory.
 */
export async function copyRows<Row extends NumberedRow>(
  client: PoolClient,
  { rows, ...target }: CopyTarget<Row> & { rows: Iterable<Row> },
): Promise<number> {
  return copyBatches(client, { ...target, batches: [rows] });
}

export async function copyBatches<Row extends NumberedRow>(
  client: PoolClient,
  given: CopyTarget<Row> & { batches: AsyncIterable<Iterable<Row>> | Iterable<Row>[] },
): Promise<number> {
  const { table, idColumn = "series_id", bucketType, passing, batches } = given;
  const encoder = new RowEncoder(bucketType, passing);
  await copyBuffers(client, `COPY ${table} (${idColumn}, bucket_start, traces) FROM STDIN (FORMAT binary)`, {
    async *[Symbol.asyncIterator]() {
      for await (const rows of batches) yield* encoder.encode(rows);
      yield encoder.rest();
      yield TRAILER;
    },
  });
  return encoder.rows;
}

export async function copyText(
  client: PoolClient,
  { into, lines }: { into: string; lines: Iterable<readonly (string | number | null)[]> },
): Promise<void> {
  await copyBuffers(client, `COPY ${into} FROM STDIN`, {
    async *[Symbol.asyncIterator]() {
      let text = "";
      for (const line of lines) {
        text += `${line.map(toText).join("\t")}\n`;
        if (text.length < BUFFER_BYTES) continue;
        yield Buffer.from(text);
        text = "";
      }
      yield Buffer.from(text);
    },
  });
}

const ESCAPED: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

function toText(value: string | number | null): string {
  if (value === null) return "\\N";
  return typeof value === "number"
    ? String(value)
    : value.replace(/[\\\t\n\r]/g, (character) => ESCAPED[character] as string);
}

async function copyBuffers(
  client: PoolClient,
  statement: string,
  buffers: AsyncIterable<Buffer>,
): Promise<void> {
  const stream = client.query(copyFrom(statement));
  const done = once(stream, "finish");
  done.catch(() => {});
  // A later write reports only that there is no connection, so the first error is kept.
  let lost: Error | undefined;
  stream.on("error", (error) => {
    lost ??= error;
  });
  try {
    for await (const buffer of buffers) {
      if (!stream.write(buffer)) await Promise.race([once(stream, "drain"), done]);
    }
  } catch (error) {
    if (lost !== undefined) throw lost;
    // Ends the COPY, so that the transaction can roll back. The server's log does not need the reason.
    stream.destroy(new Error("abandoned"));
    await done.catch(() => {});
    throw error;
  }
  stream.end();
  await done;
}

class RowEncoder<Row extends NumberedRow> {
  rows = 0;
  readonly #bucketType: BucketType;
  readonly #passing: CopyTarget<Row>["passing"];
  #buffer: Buffer;
  #at: number;

  constructor(bucketType: BucketType, passing: CopyTarget<Row>["passing"]) {
    this.#bucketType = bucketType;
    this.#passing = passing;
    this.#buffer = Buffer.allocUnsafe(BUFFER_BYTES);
    this.#at = HEADER.copy(this.#buffer);
  }

  /** The last rows stay in the buffer for the next call, or for `rest`. */
  *encode(rows: Iterable<Row>): Generator<Buffer, void> {
    const isDate = this.#bucketType === "date";
    const bucketBytes = isDate ? 4 : 8;
    const rowBytes = 2 + 3 * 4 + 4 + bucketBytes + 8;
    let buffer = this.#buffer;
    let view = viewOf(buffer);
    let at = this.#at;
    for (const row of rows) {
      this.#passing?.add(row);
      const { id, bucketHour, traces } = row;
      if (at + rowBytes > BUFFER_BYTES) {
        yield buffer.subarray(0, at);
        buffer = Buffer.allocUnsafe(BUFFER_BYTES);
        view = viewOf(buffer);
        at = 0;
      }
      view.setInt16(at, 3);
      view.setInt32(at + 2, 4);
      view.setInt32(at + 6, id);
      view.setInt32(at + 10, bucketBytes);
      const hours = bucketHour - POSTGRES_EPOCH_HOURS;
      if (isDate) view.setInt32(at + 14, hours / 24);
      else view.setBigInt64(at + 14, BigInt(hours) * MICROSECONDS_PER_HOUR);
      at += 14 + bucketBytes;
      view.setInt32(at, 8);
      // Counts are safe integers, so the high word is below 2^21.
      view.setInt32(at + 4, Math.floor(traces / 2 ** 32));
      view.setUint32(at + 8, traces % 2 ** 32);
      at += 12;
      this.rows++;
    }
    this.#buffer = buffer;
    this.#at = at;
  }

  rest(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

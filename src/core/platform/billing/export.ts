import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EtlError, PlatformError } from "../../base/errors.ts";
import { ExportError, type ExportRow } from "../../domain/usage/export.ts";
import { platformErrorOf, type RequestContext } from "../http/errors.ts";
import type { PlatformResponse } from "../http/http.ts";
import { CarefulCsv, NotPlain, PlainCsv } from "../parse/csv-cells.ts";
import { ExportReader, type ExportSubject } from "../parse/export-reader.ts";
import { ResponseError } from "../parse/response-error.ts";

/** Each call reads from the first row. Returns true if the last row lacks a line end and may be cut. */
export type ReadRows = () => AsyncGenerator<ExportRow[], boolean, undefined>;

export type SpooledExport = ReturnType<typeof spooledExport>;

/** The caller must close the export. */
export function spooledExport(
  { body, context }: PlatformResponse,
  { spool, subject, signal }: { spool: Spool; subject: ExportSubject; signal: AbortSignal | undefined },
) {
  const whole = body.isEndProved;
  async function* rowsOf(
    Cutter: typeof PlainCsv | typeof CarefulCsv,
  ): AsyncGenerator<ExportRow[], boolean, undefined> {
    let ready: ExportRow[][] = [];
    const reader = new ExportReader(Cutter, subject, (rows) => ready.push(rows));
    for await (const chunk of spool.chunks({ lent: Cutter === PlainCsv })) {
      // A process that shuts down does not read a large export to its end.
      signal?.throwIfAborted();
      await reader.push(chunk);
      yield* ready;
      ready = [];
    }
    await reader.end(whole);
    yield* ready;
    return reader.isLastUnended;
  }
  return {
    /** False for a close-delimited body without gzip: it can show differing rows, but no missing ones. */
    whole,
    /**
     * Runs `use` with the fast cutter. On any problem, runs `use` again with csv-parse, which decides and names line and
     * column. So `use` must leave nothing behind when it throws. Throws `PlatformError` for a refused export, errors of `use`,
     * and the signal's reason.
     */
    read: async <T>(use: (rows: ReadRows) => Promise<T>): Promise<T> => {
      try {
        return await use(() => rowsOf(PlainCsv));
      } catch (error) {
        const isOdd =
          error instanceof NotPlain || error instanceof ResponseError || error instanceof ExportError;
        if (!isOdd) throw error;
      }
      try {
        return await use(() => rowsOf(CarefulCsv));
      } catch (error) {
        if (error instanceof ResponseError) throw platformErrorOf(error, body.status, context);
        if (error instanceof ExportError) throw problemError(error, body.status, context);
        throw error;
      }
    },
    close: () => spool.close(),
  };
}

function problemError(
  problem: ExportError,
  status: number,
  { method, url, redact }: RequestContext,
): PlatformError {
  return new PlatformError({
    code: problem.code,
    retryable: problem.code === "response_cut",
    message: redact(`${method} ${url}: the export cannot be compared: ${problem.message}`),
    next: "Nothing was compared or changed. Run `usage-etl doctor` to see the server's capabilities.",
    method,
    url,
    status,
  });
}

const IN_MEMORY_BYTES = 1_048_576;
const READ_BYTES = 65_536;
/** Texts cut out of a piece live until the next piece. Texts of larger pieces would become old garbage. */
const LENT_BYTES = 16_384;

/**
 * Keeps a body for repeated reading, because no transaction may wait for the network, and a refused export is read twice. The
 * file has no name, so a crash leaves nothing and nobody else can read it.
 */
export class Spool {
  bytes = 0;
  #pieces: Buffer[] = [];
  #file: FileHandle | undefined;
  /** Sum of array lengths, so that no compiler removes the arrays. */
  #hastened = 0;

  /** Throws `spool_failed` if the temporary folder cannot hold the body. */
  async push(chunk: Buffer): Promise<void> {
    this.#pieces.push(chunk);
    this.bytes += chunk.length;
    if (this.bytes <= IN_MEMORY_BYTES) return;
    try {
      this.#file ??= await openNameless();
      for (const piece of this.#pieces) {
        await this.#file.appendFile(piece);
        this.#hasten(piece.length);
      }
    } catch (cause) {
      throw spoolFailed(cause);
    }
    this.#pieces = [];
  }

  /**
   * V8 frees pieces, which lie outside its heap, only when young objects fill their space. A dead array of half the size
   * makes that earlier: 13 MB of written pieces wait instead of 84 MB.
   */
  #hasten(bytes: number): void {
    this.#hastened += new Array(bytes >> 4).length;
  }

  /** Each call starts from the beginning. With `lent`, a chunk is valid only until the next chunk. */
  async *chunks({ lent = false } = {}): AsyncGenerator<Buffer, void, undefined> {
    if (this.#file === undefined) {
      yield* this.#pieces;
      return;
    }
    const file = this.#file;
    const own = lent ? [Buffer.allocUnsafe(READ_BYTES), Buffer.allocUnsafe(READ_BYTES)] : [];
    const read = (at: number) => {
      const buffer = own[(at / READ_BYTES) % 2] ?? Buffer.allocUnsafe(READ_BYTES);
      return file.read(buffer, 0, Math.min(READ_BYTES, this.bytes - at), at);
    };
    let ahead = read(0);
    for (let at = 0; at < this.bytes; at += READ_BYTES) {
      const { bytesRead, buffer } = await ahead;
      if (bytesRead !== Math.min(READ_BYTES, this.bytes - at))
        throw spoolFailed(new Error(`it ends after ${at + bytesRead} of ${this.bytes} bytes`));
      if (at + READ_BYTES < this.bytes) {
        ahead = read(at + READ_BYTES);
        ahead.catch(() => {});
      }
      const piece = lent ? LENT_BYTES : READ_BYTES;
      for (let from = 0; from < bytesRead; from += piece) {
        yield buffer.subarray(from, Math.min(bytesRead, from + piece));
      }
    }
  }

  async close(): Promise<void> {
    this.#pieces = [];
    await this.#file?.close();
    this.#file = undefined;
  }
}

async function openNameless(): Promise<FileHandle> {
  const path = join(tmpdir(), `usage-etl-${randomUUID()}`);
  const file = await open(path, "wx+", 0o600);
  await unlink(path);
  return file;
}

function spoolFailed(cause: unknown): EtlError {
  return new EtlError({
    code: "spool_failed",
    message: `An export could not be written to ${tmpdir()}: ${(cause as Error).message}`,
    next: "Set TMPDIR to a folder with room for one export, about 120 MB for a million rows.",
    cause,
  });
}

import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EtlError } from "../../errors.ts";

/** Most exports fit: only what is larger goes to a file. */
const IN_MEMORY_BYTES = 1_048_576;
const READ_BYTES = 65_536;

/**
 * Keeps a body until it was read, as often as need be: no transaction may wait for the network (docs/decisions.md, rule 13),
 * and what is refused is read a second time. A file of it has no name from the start, so nothing is left of it whatever
 * becomes of this process, and nobody else may read it.
 */
export class Spool {
  bytes = 0;
  #pieces: Buffer[] = [];
  #file: FileHandle | undefined;

  /** Throws `EtlError` (`spool_failed`) where the folder for temporary files takes no more. */
  async push(chunk: Buffer): Promise<void> {
    this.#pieces.push(chunk);
    this.bytes += chunk.length;
    if (this.bytes <= IN_MEMORY_BYTES) return;
    try {
      this.#file ??= await openNameless();
      for (const piece of this.#pieces) {
        await this.#file.appendFile(piece);
        // What is written is garbage outside of V8's heap, and only garbage inside has it collected: without a text of its
        // length, which costs 10 us, some 70 MB of it stand about while a large export is received.
        void piece.toString("latin1");
      }
    } catch (cause) {
      throw spoolFailed(cause);
    }
    this.#pieces = [];
  }

  /**
   * What was pushed, in order, from its beginning; each call reads it all. `lent`: a chunk is good until the next one is asked for,
   * so that reading takes no new memory.
   */
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
      // While this one is used, the next is read.
      if (at + READ_BYTES < this.bytes) {
        ahead = read(at + READ_BYTES);
        ahead.catch(() => {});
      }
      yield buffer.subarray(0, bytesRead);
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
    message: `An export could not be kept in ${tmpdir()}: ${(cause as Error).message}`,
    next: "Set TMPDIR to a folder with room for one export, about 120 MB for a million rows.",
    cause,
  });
}

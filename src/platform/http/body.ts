import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, type Gunzip } from "node:zlib";
import { AnswerFault, cutFault, foreignFault } from "../parse/answer-fault.ts";
import { faultError, type RequestContext, transportError } from "./errors.ts";

/** How the end of a body is announced (RFC 9112, 6.3). `close`: not at all, a lost connection looks like the end. */
export type Framing = "length" | "chunked" | "close";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

interface BodyInput {
  readonly stream: Readable;
  readonly status: number;
  readonly headers: Headers;
  readonly context: RequestContext;
  readonly signal: AbortSignal | undefined;
}

/**
 * The body of an answer. `chunks` ends without an error only when the body ended as announced: all of its
 * Content-Length, its last chunk, its gzip trailer with nothing after it, its last character whole (docs/decisions.md, rule 3).
 * What a `close` framing cannot prove is left to the reader of the content.
 */
export class AnswerBody {
  readonly framing: Framing;
  readonly gzip: boolean;
  readonly status: number;
  /** Bytes handed out so far, decoded. */
  bytes = 0;
  readonly #input: BodyInput;

  constructor(input: BodyInput) {
    this.#input = input;
    this.status = input.status;
    this.framing = framingOf(input.headers);
    this.gzip = ["gzip", "x-gzip"].includes(headerOf(input.headers, "content-encoding"));
  }

  /**
   * Decoded bytes, in order. Throws `PlatformError` (`answer_cut`, `timeout`), or the reason of the signal unchanged.
   * Leaving the loop early closes the connection.
   */
  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    const { status, context, signal } = this.#input;
    const utf8 = new Utf8Guard();
    try {
      for await (const chunk of this.#decoded()) {
        signal?.throwIfAborted();
        utf8.push(chunk);
        this.bytes += chunk.length;
        yield chunk;
      }
      utf8.end();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof AnswerFault) throw faultError(error, status, context);
      throw transportError(error, "body", context);
    } finally {
      this.discard();
    }
  }

  /** For an answer whose body is of no interest; closes the connection. */
  discard(): void {
    // undici reports the end of an abandoned body as an error event; it is nobody's any more.
    this.#input.stream.on("error", () => {});
    this.#input.stream.destroy();
  }

  #decoded(): AsyncIterable<Buffer> {
    const { headers } = this.#input;
    const encoding = headerOf(headers, "content-encoding");
    if (this.gzip) return gunzipped(this.#counted());
    if (encoding !== "" && encoding !== "identity") {
      throw foreignFault(`the answer is encoded as ${encoding.slice(0, 40)}, which was not asked for`);
    }
    return this.#counted();
  }

  /** undici proves length and chunks itself; the count is held against the length once more, since all rests on it. */
  async *#counted(): AsyncGenerator<Buffer, void, undefined> {
    const { stream, headers } = this.#input;
    let received = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      received += chunk.length;
      yield chunk;
    }
    const announced = headerOf(headers, "content-length");
    if (this.framing === "length" && Number(announced) !== received) {
      throw cutFault(`the answer has ${received} bytes, announced were ${announced}`);
    }
  }
}

/**
 * A gzip that is cut makes zlib fail at its end. Zero bytes after the trailer do not: zlib stops in front of them, which
 * shows as fewer bytes used than received.
 */
async function* gunzipped(
  wire: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  const gunzip: Gunzip = createGunzip({ chunkSize: 65_536 });
  let received = 0;
  const fed = pipeline(
    wire,
    async function* (source) {
      for await (const chunk of source) {
        received += chunk.length;
        yield chunk;
      }
    },
    gunzip,
  );
  // Awaited below; until then a failure reaches the loop through `gunzip`.
  fed.catch(() => {});
  try {
    yield* gunzip as AsyncIterable<Buffer>;
    await fed;
  } finally {
    gunzip.destroy();
  }
  if (gunzip.bytesWritten !== received) {
    throw cutFault(`the gzip of the answer ends after ${gunzip.bytesWritten} of ${received} bytes`);
  }
}

/** JSON and CSV are UTF-8. Decoders put U+FFFD for what is not, which would make different ids one. */
class Utf8Guard {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const end = wholeCharacters(bytes);
    if (!isUtf8(bytes.subarray(0, end))) throw foreignFault("the answer is not UTF-8");
    this.#rest = bytes.subarray(end);
  }

  end(): void {
    if (this.#rest.length > 0) throw cutFault("the answer ends within a character");
  }
}

/** Length of the part that does not end within a multi-byte character. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}

function framingOf(headers: Headers): Framing {
  if (/(^|,)\s*chunked\s*$/.test(headerOf(headers, "transfer-encoding"))) return "chunked";
  return headerOf(headers, "transfer-encoding") === "" && headers["content-length"] !== undefined
    ? "length"
    : "close";
}

/** In lower case; a header that came several times, joined with commas; empty where it is absent. */
function headerOf(headers: Headers, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value.join(", ") : (value ?? "")).trim().toLowerCase();
}

import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, type Gunzip } from "node:zlib";
import { type Clock, describeDuration } from "../../base/clock.ts";
import { cutError, foreignError, ResponseError, tooLargeError } from "../parse/response-error.ts";
import { platformErrorOf, type RequestContext, transportError } from "./errors.ts";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

interface BodyInput {
  readonly stream: Readable;
  readonly status: number;
  readonly headers: Headers;
  readonly context: RequestContext;
  readonly signal: AbortSignal | undefined;
  readonly deadline: Deadline;
  readonly now: () => number;
  /** Grace in ms before the least rate applies. Infinite: there is no least rate. */
  readonly graceMs: number;
  /** Largest body, bytes. */
  readonly limit: number;
}

/** Least average rate of a body after its grace, far below any useful line, so that only a drip is ended. */
const LEAST_BYTES_PER_S = 4096;

/**
 * `chunks` ends without an error only if the body is whole: Content-Length, last chunk, gzip trailer and last character
 * (rule 3 of docs/rules.md). Without `isEndProved` the content's reader must prove the end.
 */
export class ResponseBody {
  readonly gzip: boolean;
  /** False if only the connection's end marks the body's end (RFC 9112, 6.3): a lost connection looks the same. */
  readonly isEndProved: boolean;
  readonly status: number;
  bytes = 0;
  /** Raw bytes received, limited because a gzip may decode to nothing, for ever. */
  #received = 0;
  /** Time that the reader worked on chunks, in ms. */
  #backedOffMs = 0;
  readonly #input: BodyInput;

  constructor(input: BodyInput) {
    this.#input = input;
    this.status = input.status;
    this.gzip = ["gzip", "x-gzip"].includes(headerOf(input.headers, "content-encoding"));
    this.isEndProved = this.gzip || isFramed(input.headers);
  }

  header(name: string): string {
    return headerOf(this.#input.headers, name);
  }

  /**
   * Decoded bytes, in order. Throws `PlatformError` (`response_cut`, `timeout`, `response_too_large`) or the signal's reason.
   * Leaving the loop early closes the connection.
   */
  async *chunks(
    limits: Partial<Pick<BodyInput, "graceMs" | "limit">> = {},
  ): AsyncGenerator<Buffer, void, undefined> {
    const { status, context, signal, now } = this.#input;
    const { graceMs, limit } = { ...this.#input, ...limits };
    const utf8 = new Utf8Guard();
    this.#requirePace(graceMs);
    try {
      for await (const chunk of this.#decoded(limit)) {
        signal?.throwIfAborted();
        utf8.push(chunk);
        this.bytes += chunk.length;
        if (this.bytes > limit) throw this.#tooLarge(limit);
        const handedOutAt = now();
        yield chunk;
        this.#backedOffMs += Math.max(0, now() - handedOutAt);
      }
      utf8.end();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof ResponseError) throw platformErrorOf(error, status, context);
      throw transportError(error, "body", context);
    } finally {
      this.discard();
    }
  }

  #tooLarge(limit: number): ResponseError {
    return tooLargeError(limit, limit === this.#input.limit);
  }

  #requirePace(graceMs: number): void {
    const allowedMs = () => graceMs + this.#backedOffMs + (this.#received / LEAST_BYTES_PER_S) * 1000;
    this.#input.deadline.set(
      allowedMs,
      () => `only ${this.#received} bytes of the response came within ${describeDuration(allowedMs())}`,
    );
  }

  discard(): void {
    this.#input.deadline.end();
    // undici reports an abandoned body's end as an error event; without a listener the process ends.
    this.#input.stream.on("error", () => {});
    this.#input.stream.destroy();
  }

  /** undici fails the stream if length or last chunk is missing. */
  #decoded(limit: number): AsyncIterable<Buffer> {
    const { headers } = this.#input;
    const encoding = headerOf(headers, "content-encoding");
    if (this.gzip) return gunzipped(this.#wire(limit), () => this.#received);
    if (encoding !== "" && encoding !== "identity") {
      throw foreignError(`the response is encoded as ${encoding.slice(0, 40)}, which was not requested`);
    }
    return this.#wire(limit);
  }

  async *#wire(limit: number): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of this.#input.stream) {
      this.#received += chunk.length;
      if (this.#received > limit) throw this.#tooLarge(limit);
      yield chunk;
    }
  }
}

/**
 * zlib fails at the end of a cut gzip. At zero bytes after the trailer it stops silently, and has used fewer bytes than were
 * received.
 */
async function* gunzipped(
  wire: AsyncIterable<Buffer>,
  received: () => number,
): AsyncGenerator<Buffer, void, undefined> {
  const gunzip: Gunzip = createGunzip({ chunkSize: 65_536 });
  const fed = pipeline(wire, gunzip);
  // Awaited below. Until then a failure reaches the loop through `gunzip`.
  fed.catch(() => {});
  try {
    yield* gunzip as AsyncIterable<Buffer>;
    await fed;
  } finally {
    gunzip.destroy();
  }
  if (gunzip.bytesWritten !== received()) {
    throw cutError(`the gzip of the response ends after ${gunzip.bytesWritten} of ${received()} bytes`);
  }
}

/** Refuses invalid UTF-8: a decoder would replace it with U+FFFD and so merge different ids. */
class Utf8Guard {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const end = wholeCharacters(bytes);
    if (!isUtf8(bytes.subarray(0, end))) throw foreignError("the response is not UTF-8");
    this.#rest = bytes.subarray(end);
  }

  end(): void {
    if (this.#rest.length > 0) throw cutError("the response ends within a character");
  }
}

function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) {
      const needed = 2 + Number(byte >= 0xe0) + Number(byte >= 0xf0);
      return needed > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}

function isFramed(headers: Headers): boolean {
  const coding = headerOf(headers, "transfer-encoding");
  return coding === "" ? headers["content-length"] !== undefined : /(^|,)\s*chunked$/.test(coding);
}

function headerOf(headers: Headers, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value.join(", ") : (value ?? "")).trim().toLowerCase();
}

/** Shortest wait: timers are some milliseconds late, which would add up. */
const LEAST_WAIT_MS = 1000;
/** The longest delay of setTimeout. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** `transportError` turns this error into a `timeout`. */
class TooSlow extends Error {
  readonly code = "ETIMEDOUT";
}

/**
 * Aborts a request that takes too long or that its caller aborts. undici's own time-outs restart with each 1xx response and
 * each byte. Uses only timers, because the host's clock may be set.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #caller: AbortSignal | undefined;
  readonly #request = new AbortController();
  #watch = new AbortController();

  constructor(clock: Clock, caller: AbortSignal | undefined) {
    this.#clock = clock;
    this.#caller = caller;
    caller?.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  set(allowedMs: () => number, whatFor: () => string): void {
    this.#watch.abort();
    this.#watch = new AbortController();
    // A wait is rejected only when the watch has ended.
    this.#abortAfter(allowedMs, whatFor, this.#watch.signal).catch(() => {});
  }

  /** Call this when the request is over. Otherwise the process's signal keeps a listener. */
  end(): void {
    this.#watch.abort();
    this.#caller?.removeEventListener("abort", this.#follow);
  }

  readonly #follow = () => this.#request.abort(this.#caller?.reason);

  async #abortAfter(allowedMs: () => number, whatFor: () => string, watch: AbortSignal): Promise<void> {
    for (let waited = 0; ; ) {
      const left = allowedMs() - waited;
      if (left <= 0) break;
      const ms = Math.min(Math.max(left, LEAST_WAIT_MS), LONGEST_WAIT_MS);
      await this.#clock.wait(ms, watch);
      waited += ms;
    }
    this.#request.abort(new TooSlow(whatFor()));
    this.end();
  }
}

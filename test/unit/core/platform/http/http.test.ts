import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { PlatformHttp, type PlatformHttpOptions } from "../../../../../src/core/platform/http/http.ts";
import { clientOf, framed, KEY, QUERY, rawServer, rejection, status } from "./raw-server.ts";

const RESPONSE = '{"stride":{"days":1},"usage":[]}';
const NOW = Date.UTC(2026, 0, 5, 12);

interface Found {
  readonly message: string;
  readonly next: string;
  readonly url: string;
  readonly cause?: { readonly code?: string };
}

async function failure(
  url: string,
  options: Partial<PlatformHttpOptions> = {},
  signal?: AbortSignal,
): Promise<Found> {
  const client = clientOf(url, { clock: { now: () => NOW }, ...options });
  return (await rejection(
    client.usage(QUERY, { onRecords: () => {}, ...(signal === undefined ? {} : { signal }) }),
  )) as Found;
}

describe("An error response", () => {
  it.each([
    ['{"detail":"Invalid token"}', "Invalid token"],
    [
      '{"detail":[{"loc":["query","end_time"],"msg":"too late"},{"msg":"no"}]}',
      "query.end_time: too late; no",
    ],
    ['{"error":"Forbidden"}', '{"error":"Forbidden"}'],
    [`{"detail":"the key ${KEY} is known"}`, "the key [redacted] is known"],
    ["", ""],
  ])("%s says in words: %s", async (body, words) => {
    const server = await rawServer(() => status("422 X", body));
    expect(await failure(server.url)).toMatchObject({ words });
  });

  it.each([
    [400, "request_refused", false],
    [401, "unauthorized", false],
    [403, "forbidden", false],
    [408, "request_refused", true],
    [422, "request_refused", false],
    [425, "request_refused", true],
    [429, "rate_limited", true],
    [499, "request_refused", false],
    [500, "server_error", true],
    [503, "server_error", true],
    [599, "server_error", true],
    [201, "response_invalid", false],
  ])("%d is %s, worth trying again: %s", async (code, name, retryable) => {
    const server = await rawServer(() => status(`${code} X`, '{"detail":"why"}'));
    const error = await failure(server.url);
    expect(error).toMatchObject({
      name: "PlatformError",
      code: name,
      retryable,
      status: code,
      method: "GET",
    });
    expect(error.message).toContain(`responded with ${code}: {"detail":"why"}`);
    expect(error.message).toContain(`GET ${server.url}/api/v1/orgs/current/billing/granular-usage?`);
    expect(error.next).not.toBe("");
  });

  it.each([
    ["0", 0],
    ["7", 7000],
    ["300", 300_000],
    ["301", 300_000],
    ["Tue, 06 Jan 2026 12:00:00 GMT", 300_000],
    ["Mon, 05 Jan 2026 12:00:30 GMT", 30_000],
    ["Mon, 05 Jan 2026 11:59:59 GMT", 0],
    ["1.5", undefined],
    ["", undefined],
  ])("reads Retry-After %j", async (header, retryAfterMs) => {
    const server = await rawServer(() => status("429 X", "slow down", [`retry-after: ${header}`]));
    expect(await failure(server.url)).toMatchObject({ code: "rate_limited", retryAfterMs });
  });

  it("keeps its status if its own body is cut", async () => {
    const server = await rawServer(() => ({
      bytes: "HTTP/1.1 503 X\r\ncontent-length: 99\r\n\r\nhalf",
      closing: "end",
    }));
    expect(await failure(server.url)).toMatchObject({ code: "server_error", status: 503 });
  });
});

describe("A request without a response", () => {
  it("fails with network and the cause if no server listens or the name is unknown", async () => {
    const refused = await failure("http://127.0.0.1:1");
    expect(refused).toMatchObject({ code: "network", retryable: true, status: undefined });
    expect(refused.cause?.code).toBe("ECONNREFUSED");
    const unknown = await failure("http://no-such-host.invalid");
    expect(unknown).toMatchObject({ code: "network", retryable: true });
    expect(unknown.next).toContain("USAGE_BASE_URL");
  });

  it("fails with network if the connection ends before the head or is not HTTP", async () => {
    const server = await rawServer((_, index) => ({
      bytes: index === 0 ? "HTTP/1.1 200 OK\r\ncontent-" : "SSH-2.0-x\r\n\r\n",
      closing: "end",
    }));
    expect(await failure(server.url)).toMatchObject({ code: "network", retryable: true });
    expect(await failure(server.url)).toMatchObject({
      code: "network",
      next: expect.stringContaining("does not speak HTTP"),
    });
  });

  it("fails with timeout if the head or the rest of the body does not come", async () => {
    const silent = await rawServer(() => undefined);
    expect(await failure(silent.url, { timeouts: { headersMs: 60 } })).toMatchObject({
      code: "timeout",
      retryable: true,
    });
    const half = await rawServer(() => ({
      bytes: framed(RESPONSE, "length").subarray(0, -3),
      closing: "keep",
    }));
    expect(await failure(half.url, { timeouts: { bodyMs: 60 } })).toMatchObject({
      code: "timeout",
      retryable: true,
    });
  });

  it("throws the signal's reason unchanged before and during head and body", async () => {
    for (const reason of [new RangeError("mine"), "a string"]) {
      expect(await failure("http://127.0.0.1:1", {}, AbortSignal.abort(reason))).toBe(reason);
      const beforeHead = new AbortController();
      const silent = await rawServer(() => {
        beforeHead.abort(reason);
        return undefined;
      });
      expect(await failure(silent.url, {}, beforeHead.signal)).toBe(reason);
      const midBody = new AbortController();
      const record = '{"dimensions":{"project_id":"p"}}';
      const half = await rawServer(() => ({
        bytes: framed(`{"usage":[${record},${record}]}`, "length").subarray(0, -9),
        closing: "keep",
      }));
      const requested = clientOf(half.url).usage(QUERY, {
        signal: midBody.signal,
        onRecords: () => midBody.abort(reason),
      });
      expect(await rejection(requested)).toBe(reason);
    }
  });
});

describe("The client", () => {
  it.each([301, 302, 303, 307, 308])("refuses a %d to another host and sends it nothing", async (code) => {
    const other = await rawServer(() => status("200 OK", RESPONSE));
    const server = await rawServer(() => status(`${code} X`, "", [`location: ${other.url}/login?k=${KEY}`]));
    const error = await failure(server.url);
    expect(error).toMatchObject({ code: "redirect_refused", retryable: false, status: code });
    expect(error.message).toContain(new URL(server.url).host);
    expect(error.message).toContain(new URL(other.url).host);
    expect(error.message).not.toContain(KEY);
    expect(error.next).toContain("USAGE_BASE_URL");
    expect(other.connections()).toBe(0);
  });
});

describe("The API key", () => {
  it("appears in no error, whatever the server sends back", async () => {
    const echo = `key=${KEY} and ${encodeURIComponent(KEY)} "${KEY}"`;
    const server = await rawServer((_, index) =>
      [
        status("401 X", echo),
        status("422 X", JSON.stringify({ detail: [{ loc: ["query", KEY], msg: echo }] })),
        status("200 OK", echo),
        status("200 OK", `{"${KEY}":1,"usage":[],"stride":"${KEY}"}`),
        status("302 X", "", [`location: http://${KEY}.example/${KEY}`]),
        { bytes: `HTTP/1.1 200 OK\r\n${KEY} ${KEY}\r\n\r\n`, closing: "end" } as const,
        { bytes: `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${KEY}\r\n`, closing: "end" } as const,
      ].at(index),
    );
    for (const expected of [
      "unauthorized",
      "request_refused",
      "response_invalid",
      "response_invalid",
      "redirect_refused",
      "network",
      "response_cut",
    ]) {
      const error = await failure(server.url);
      expect(error).toMatchObject({ code: expected });
      expect(everythingOf(error)).not.toContain(KEY.toLowerCase());
    }
    const endsWithin = `{"usage":[{"dimensions":{},"traces":"${"x".repeat(48)}${KEY}"}]}`;
    const shortened = await rawServer(() => status("200 OK", endsWithin));
    const { message } = await failure(shortened.url);
    expect(message).toContain("x[redacted]...");
    const inPath = await failure(`http://127.0.0.1:1/${KEY}`);
    expect(everythingOf(inPath)).not.toContain(KEY.toLowerCase());
    expect(inPath.url).toContain("/[redacted]/api/v1/");
  });

  it.each(["", " ", "a b", "a\r\nx: y", "ключ", `${KEY}\n`])(
    "is refused if no header can carry it: %j",
    (apiKey) => {
      expect(() => new PlatformHttp({ baseUrl: "http://h", apiKey })).toThrow(/API key/);
    },
  );
});

function everythingOf(value: unknown): string {
  const stack = value instanceof Error ? `${value.stack}${value.message}` : "";
  return `${inspect(value, { depth: 12, showHidden: true })}${JSON.stringify(value)}${stack}`.toLowerCase();
}

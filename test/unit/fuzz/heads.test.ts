import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { fromRetryAfter, LONGEST_WAIT_MS } from "../../../src/core/platform/http/errors.ts";
import { clientOf, QUERY, rawServer } from "../core/platform/http/raw-server.ts";
import { holds, KEY, often, outcomeOf, SEED } from "./fuzz.ts";

const BODY = '{"stride":{"days":1},"usage":[{"dimensions":{"project_id":"p"},"traces":7}]}';
const CODES = [
  "unauthorized",
  "forbidden",
  "rate_limited",
  "request_refused",
  "server_error",
  "network",
  "timeout",
  "response_cut",
  "response_invalid",
  "response_too_large",
  "redirect_refused",
];

const token = fc.constantFrom(
  ...`gzip x-gzip GZIP identity br gzip,identity chunked Chunked text/html application/json 0 -1 1e3 0x10 999999
  99999999999999999999 ${BODY.length} soon / // http://[ https://evil.example/ file:///etc/passwd http://127.0.0.1:1/
  ? ${KEY} timeout=-5 é`.split(/\s+/),
  "",
  "gzip, gzip",
  "Thu, 01 Jan 1970 00:00:00 GMT",
  "Fri, 31 Dec 9999 23:59:59 GMT",
  "Mon, 99 Foo 2026 99:99:99 GMT",
);
const name = fc.constantFrom(
  "content-length",
  "transfer-encoding",
  "content-encoding",
  "content-type",
  "retry-after",
  "location",
  "connection",
  "keep-alive",
  "set-cookie",
  "x",
  "upgrade",
  "trailer",
  "",
);
const head = fc.record({
  status: fc.oneof(
    { weight: 4, arbitrary: fc.constant("200 OK") },
    fc.constantFrom(
      "100 Continue",
      "101 Switching",
      "103 Hints",
      "204 No",
      "206 Part",
      "301 M",
      "304 N",
      "307 T",
    ),
    fc.integer({ min: 0, max: 1200 }).map(String),
    fc.constantFrom("429 Slow", "503 Down", "422 X", "200", "", "two hundred", "-200 X"),
  ),
  version: fc.oneof(
    { weight: 9, arbitrary: fc.constant("HTTP/1.1") },
    fc.constantFrom("HTTP/1.0", "HTTP/2", "ICY", ""),
  ),
  headers: fc.array(fc.tuple(name, token), { maxLength: 4 }),
  body: fc.constantFrom("plain", "gzip", "chunked", "empty", "html"),
});

const bodies = {
  plain: Buffer.from(BODY),
  gzip: gzipSync(BODY),
  chunked: Buffer.from(`${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`),
  empty: Buffer.alloc(0),
  html: Buffer.from(`<html>${KEY}</html>`),
};

test(`whatever head a server sends, the request ends with the response or a code (seed ${SEED})`, async () => {
  let bytes = Buffer.alloc(0);
  const server = await rawServer(() => ({ bytes, closing: "end" }));
  const client = clientOf(server.url, { apiKey: KEY, timeouts: { headersMs: 2000, bodyMs: 2000 } });
  let read = 0;
  await holds("http", head, 150, async ({ status, version, headers, body }) => {
    const lines = headers.map(([field, value]) => `${field}: ${value}\r\n`).join("");
    bytes = Buffer.concat([Buffer.from(`${version} ${status}\r\n${lines}\r\n`), bodies[body]]);
    const outcome = await outcomeOf(() => client.usage(QUERY, { onRecords: () => {} }));
    if ("code" in outcome) return expect(CODES).toContain(outcome.code);
    read += 1;
    expect(outcome.value).toEqual({ stride: "day", records: 1 });
  });
  expect(read).toBeGreaterThan(0);
});

test(`Retry-After is a time of at most five minutes, or says nothing (seed ${SEED})`, async () => {
  const text = fc.oneof(
    token,
    fc.string({ unit: "binary" }),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
  );
  await fc.assert(
    fc.property(text, fc.integer({ min: 0, max: 4e12 }), (header, now) => {
      const { ms, problem } = fromRetryAfter(header, now);
      if (ms !== undefined) expect(ms >= 0 && ms <= LONGEST_WAIT_MS).toBe(true);
      else expect(problem === undefined).toBe(header.trim() === "");
    }),
    often(500),
  );
});

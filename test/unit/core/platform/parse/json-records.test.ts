import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonRecordCutter } from "../../../../../src/core/platform/parse/json-records.ts";
import { ResponseError } from "../../../../../src/core/platform/parse/response-error.ts";

function cut(pieces: readonly (Buffer | string)[]) {
  const records: unknown[] = [];
  const cutter = new JsonRecordCutter((run, first) => {
    expect(first).toBe(records.length);
    records.push(...run);
  });
  for (const piece of pieces) cutter.push(Buffer.from(piece));
  return { ...cutter.end(), all: records };
}

function fault(pieces: readonly (Buffer | string)[]): ResponseError {
  try {
    cut(pieces);
  } catch (error) {
    expect(error).toBeInstanceOf(ResponseError);
    return error as ResponseError;
  }
  throw new Error("expected a refusal");
}

function bytewise(body: Buffer): Buffer[] {
  return Array.from(body, (_, at) => body.subarray(at, at + 1));
}

// Names with everything that could be mistaken for structure, or cut within a character.
const text = fc.string({
  unit: fc.constantFrom("a", '"', "\\", "{", "}", "[", "]", ",", ":", " ", "é", "漢", "🚀", "\n", "\u0000"),
});
const plain = fc.dictionary(
  text,
  fc.oneof(text, fc.double({ noNaN: true }), fc.boolean(), fc.constant(null)),
  { maxKeys: 3 },
);
const record = fc.record({ dimensions: plain, nested: fc.array(plain, { maxLength: 2 }), traces: fc.nat() });
const member = fc.tuple(
  text.filter((key) => key !== "usage" && key !== "stride" && key !== "__proto__"),
  fc.oneof(
    plain,
    fc.array(plain, { maxLength: 2 }),
    text,
    fc.double({ noNaN: true }),
    fc.boolean(),
    fc.constant(null),
  ),
);
const document = fc
  .record({
    usage: fc.array(record, { maxLength: 4 }),
    stride: fc.record({ days: fc.nat(365), hours: fc.nat(1) }),
    extra: fc.array(member, { maxLength: 3 }),
    at: fc.nat(),
    swap: fc.boolean(),
    indent: fc.constantFrom(0, 1, "\t", "\r\n "),
  })
  .map(({ usage, stride, extra, at, swap, indent }) => {
    const known: [string, unknown][] = [
      ["usage", usage],
      ["stride", stride],
    ];
    if (swap) known.reverse();
    const split = at % (extra.length + 1);
    const members = [...extra.slice(0, split), ...known, ...extra.slice(split)];
    return { usage, stride, body: Buffer.from(JSON.stringify(Object.fromEntries(members), null, indent)) };
  });

describe("JsonRecordCutter", () => {
  it("yields the same as JSON.parse, wherever the bytes are split", () => {
    fc.assert(
      fc.property(document, fc.array(fc.nat(), { maxLength: 6 }), ({ body, usage, stride }, cuts) => {
        const ends = cuts.map((at) => at % (body.length + 1)).sort((a, b) => a - b);
        const pieces = [0, ...ends].map((start, index) => body.subarray(start, ends[index] ?? body.length));
        const expected = JSON.parse(JSON.stringify({ usage, stride }));
        for (const way of [pieces, bytewise(body), [body]]) {
          const found = cut(way);
          expect(found.all).toEqual(expected.usage);
          expect(found.stride).toEqual(expected.stride);
          expect(found.records).toBe(usage.length);
        }
      }),
    );
  });

  it("refuses every beginning of a valid body as cut", () => {
    fc.assert(
      fc.property(document, ({ body }) => {
        for (let end = 0; end < body.length; end += 1) {
          expect(fault([body.subarray(0, end)]).code).toBe("response_cut");
        }
      }),
      { numRuns: 40 },
    );
  });

  it("refuses anything but whitespace after the closing brace", () => {
    const body = '{"stride":{},"usage":[]}';
    expect(cut([body, " \r\n\t"]).records).toBe(0);
    for (const more of ["}", "x", "{", "0", "\u0000", body]) {
      expect(fault([body, more])).toMatchObject({ code: "response_invalid", location: undefined });
      expect(fault([body + more]).code).toBe("response_invalid");
    }
  });

  it.each([
    ["an HTML page", "<!DOCTYPE html><html></html>", "<!DOCTYPE html>"],
    ["an array", "[]", "not JSON"],
    ["no usage", '{"stride":{"days":1},"detail":"x"}', 'no `usage`; it has "stride", "detail"'],
    ["no stride", '{"usage":[]}', "no `stride`"],
    ["an empty object", "{}", "no fields"],
    ["usage null", '{"stride":{},"usage":null}', "not an array"],
    ["usage an object", '{"stride":{},"usage":{}}', "not an array"],
    ["usage twice", '{"usage":[],"stride":{},"usage":[]}', "`usage` twice"],
    ["usage twice, once escaped", '{"usage":[],"stride":{},"us\\u0061ge":[]}', "`usage` twice"],
    ["stride twice", '{"stride":{},"stride":{},"usage":[]}', "`stride` twice"],
    ["a comma too many", '{"stride":{},"usage":[{},]}', 'unexpected "]"'],
    ["a comma too few", '{"stride":{},"usage":[{}{}]}', 'unexpected "{"'],
    ["no colon", '{"stride" {},"usage":[]}', "unexpected"],
    ["a bare word", '{"stride":{},"x":nope,"usage":[]}', 'unexpected "nope"'],
    ["a trailing comma", '{"stride":{},"usage":[],}', "unexpected"],
  ])("refuses %s", (_, body, words) => {
    for (const way of [[body], bytewise(Buffer.from(body))]) {
      const found = fault(way);
      expect(found).toMatchObject({ code: "response_invalid", location: undefined });
      if (way.length === 1) expect(found.message).toContain(words);
    }
  });

  it.each([
    ["a number", "[{},7]", 1],
    ["null", "[null]", 0],
    ["broken inside", '[{"a":1},{"a":1},{"a":nope},{"a":1}]', 2],
    ["with a key twice", '[{"a":1},{"traces":1,"traces":2}]', 1],
    ["with a key twice within", '[{"d":[{"id":"x\\":","id":null}]}]', 0],
    ["with a key twice, once escaped", '[{"a":1},{"a":1},{"id":"x","i\\u0064":"y"},{"a":1}]', 2],
    ["mismatched brackets", '[{"a":1},{"a":[}},{"a":1}]', 1],
  ])("names the record that is %s", (_, usage, index) => {
    for (const way of [
      [`{"stride":{},"usage":${usage}}`],
      bytewise(Buffer.from(`{"stride":{},"usage":${usage}}`)),
    ]) {
      expect(fault(way)).toMatchObject({ code: "response_invalid", location: `usage.${index}` });
    }
  });

  it("accepts a record of a megabyte and refuses one byte more", () => {
    const around = (size: number) => `{"a":"${"x".repeat(size - 8)}"}`;
    const body = (size: number) => Buffer.from(`{"stride":{},"usage":[{},${around(size)}]}`);
    const pieces = (bytes: Buffer) =>
      Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, at) =>
        bytes.subarray(at * 65_536, (at + 1) * 65_536),
      );
    expect(cut(pieces(body(1_048_576))).records).toBe(2);
    expect(fault(pieces(body(1_048_577)))).toMatchObject({ code: "response_invalid", location: "usage.1" });
  });

  it("skips a byte order mark, whole or in pieces", () => {
    const body = Buffer.from('\u{FEFF}{"stride":{},"usage":[{}]}');
    expect(cut([body]).records).toBe(1);
    expect(cut(bytewise(body)).records).toBe(1);
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UsageRecord } from "../../../../../src/core/domain/usage/record.ts";
import { JsonRecordCutter } from "../../../../../src/core/platform/parse/json-records.ts";
import { PlainRecords } from "../../../../../src/core/platform/parse/plain-records.ts";
import { ResponseError } from "../../../../../src/core/platform/parse/response-error.ts";
import { eachOf, wireRecordReader } from "../../../../../src/core/platform/parse/wire-record.ts";
import { GroupingWitness } from "../../../../../src/core/platform/parse/wire-values.ts";

/** What is read of a body: its records, its fault, and how many were read without `JSON.parse`. */
function read(pieces: readonly Buffer[], isQuick: boolean) {
  const records: UsageRecord[] = [];
  let quickly = 0;
  let batches = 0;
  const witness = new GroupingWitness();
  const fromWireRecord = wireRecordReader("user", witness);
  const toRecords = eachOf(fromWireRecord);
  const plain = new PlainRecords(fromWireRecord, (read) => {
    quickly += read.length;
    batches += 1;
    records.push(...read);
  });
  const cutter = new JsonRecordCutter(
    (raw, first) => {
      expect(first).toBe(records.length);
      records.push(...toRecords(raw, first));
    },
    isQuick ? plain : undefined,
  );
  let fault: unknown;
  try {
    for (const piece of pieces) cutter.push(piece);
    expect(cutter.end().records).toBe(records.length);
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    fault = { code: error.code, message: error.message, location: error.location };
  }
  return { records, fault, foreign: witness.verdict(), quickly, batches };
}

/** The same with both. Where an response has a fault nothing of it is used, so only the fault counts. */
function readBoth(pieces: readonly Buffer[]) {
  const { quickly, batches, ...quick } = read(pieces, true);
  const { quickly: _, batches: __, ...careful } = read(pieces, false);
  if (careful.fault === undefined) expect(quick).toEqual(careful);
  else expect(quick.fault).toEqual(careful.fault);
  return { ...quick, quickly, batches };
}

/** `between` stands before the record `at`, and a comma before all others. */
function bodyOf(records: readonly string[], { at = 0, between = "," } = {}): Buffer {
  const usage = records.map((record, i) => (i === 0 ? "" : i === at ? between : ",") + record).join("");
  return Buffer.from(`{"stride":{"days":1,"hours":0},"usage":[${usage}]}`);
}

function inPieces(body: Buffer, bytes: number): Buffer[] {
  return Array.from({ length: Math.ceil(body.length / bytes) }, (_, i) =>
    body.subarray(i * bytes, (i + 1) * bytes),
  );
}

const IDS = [
  "3f1f2a77-95a3-4f6e-8a0a-000000000001",
  "3F1F2A77-95A3-4F6E-8A0A-000000000002",
  "",
  "é漢🚀",
  "a",
];
const NAMES = [
  "user.1@example.com",
  "",
  "{}",
  '}"',
  '\\"},{',
  "\\",
  "é漢🚀",
  "a\nb",
  "\u0000",
  "\ud800",
  "]",
];
const id = fc.oneof(fc.constantFrom(...IDS), fc.constant(null), fc.constant(undefined));
const name = fc.oneof(fc.constantFrom(...NAMES), fc.constant(null), fc.constant(undefined));
const dimensions = fc
  .record({ user_id: id, user_email: name, more: fc.constantFrom(undefined, "x") })
  .map(({ user_id, user_email, more }) => JSON.stringify({ user_id, user_email, project_id: more }));
const day = fc.integer({ min: 1, max: 28 }).map((at) => `"2026-02-${String(at).padStart(2, "0")}T00:00:00Z"`);
const traces = fc.oneof(fc.nat(12).map(String), fc.nat(2 ** 31).map(String));
/** Texts of values that a careless reader would take for another value, or take at all. */
const ODD_TIMES = [
  "null",
  '"2026-02-01T00:00:00+01:00"',
  '"2026-02-01T00:00:00.000Z"',
  '"2026-02-01"',
  '"2026-02-30T00:00:00Z"',
  '"2026-02-01T00:00:00\\u005a"',
  '"\\u0032026-02-01T00:00:00Z"',
  '"x"',
  "7",
  '"2026-02-01T00:00:00Z',
];
const ODD_TRACES = [
  "-1",
  "-0",
  "00",
  "01",
  "1.0",
  "1.5",
  "1e3",
  "999999999999999",
  "9007199254740991",
  "9007199254740993",
  "99999999999999999999",
  "null",
  '"1"',
  "",
  "1 ",
  "+1",
  "0x1",
];
const ODD_DIMENSIONS = [
  '{"user_id":"a","user_id":"b"}',
  '{"user_id":"\\u0061","user_email":"x\\n"}',
  '{"user_id":7}',
  '{"user_id":{"a":{}}}',
  "{}",
  "{ }",
  "[]",
  "null",
  '{"user_id":"a"',
  '{"user_id":"a\tb"}',
  '{"user_id":"a",}',
  '{"project_id":"p"}',
];
const GAPS = [", ", ",\n", " ,", ",,", " ", "", ";", ", ,", "]", "}", ":", "\t", ",\u0000"];
const MEMBERS = [
  "",
  ',"cost":null',
  ',"longlived":3',
  ',"note":"{\\"traces\\":1}"',
  ',"traces":7',
  ',"a":[{"b":1}]',
];

type Parts = readonly [time: string, dimensions: string, traces: string];
/** Ways in which a whole response is written. */
const WRITERS: readonly ((parts: Parts) => string)[] = [
  ([time, of, count]) => `{"time_bucket":${time},"dimensions":${of},"traces":${count}}`,
  ([time, of, count]) => `{"time_bucket": ${time}, "dimensions": ${of}, "traces": ${count}}`,
  ([time, of, count]) => `{\n "traces": ${count},\n "dimensions": ${of},\n "time_bucket": ${time}\n}`,
  ([time, of, count]) =>
    `{"longlived":${count.length},"dimensions":${of},"cost":null,"traces":${count},"time_bucket":${time},"more":1}`,
  ([time, of, count]) => `{"time_bucket":${time},"dimensions":${of},"traces":${count},"nested":{"traces":1}}`,
  ([time, of, count]) => `{"time_bucket":${time},"dimensions":${of},"traces":${count},"traces":${count}}`,
  ([time, of, count]) =>
    `{"time_bucket":${time},"dimensions":${of},"traces":${count},"nested":[{"traces":1}]}`,
  ([time, of, count]) => `{"time_bucket":${time},"dimensions":${of},"traces":${count},"note":{"a":"x}}"}}`,
  ([, of, count]) => `{"time_bucket":null,"dimensions":${of},"traces":${count}}`,
  ([, of, count]) => `{"dimensions":${of},"traces":${count}}`,
  ([time, of]) => `{"time_bucket":${time},"dimensions":${of}}`,
];
const write = WRITERS[0] as (typeof WRITERS)[number];
const parts = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(day, dimensions, traces) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...ODD_TIMES), dimensions, traces) },
  { weight: 1, arbitrary: fc.tuple(day, fc.constantFrom(...ODD_DIMENSIONS), traces) },
  { weight: 1, arbitrary: fc.tuple(day, dimensions, fc.constantFrom(...ODD_TRACES)) },
);
const body = fc
  .record({
    all: fc.array(
      fc.tuple(parts, fc.oneof({ weight: 9, arbitrary: fc.constant("") }, fc.constantFrom(...MEMBERS))),
      {
        maxLength: 14,
      },
    ),
    writer: fc.constantFrom(...WRITERS),
    other: fc.constantFrom(...WRITERS),
    odd: fc.nat(20),
    gap: fc.record({ at: fc.nat(60), between: fc.constantFrom(...GAPS) }),
  })
  .map(({ all, writer, other, odd, gap }) =>
    bodyOf(
      all.map(([of, more], i) => (i === odd ? other : writer)(of).replace(/\}$/, `${more}}`)),
      gap,
    ),
  );

describe("PlainRecords", () => {
  it("reads what JSON.parse and the schema read, and refuses what they refuse, wherever the bytes are split", () => {
    fc.assert(
      fc.property(body, fc.integer({ min: 1, max: 700 }), (bytes, size) => {
        readBoth(inPieces(bytes, size));
      }),
      { numRuns: 3000 },
    );
  });

  /** The first day has one record and the others have eight, so the first piece has two days. */
  const regular = Array.from(
    { length: 40 },
    (_, i): Parts => [
      `"2026-02-${String(1 + Math.floor((i + 7) / 8)).padStart(2, "0")}T00:00:00Z"`,
      `{"user_id":"${i % 8}","user_email":"${i % 3}@é.example"}`,
      String(i * 1009),
    ],
  );

  it.each([0, 1, 2, 3, 4])("reads nearly all of a regular response, as writer %i writes it", (writer) => {
    const bytes = bodyOf(regular.map(WRITERS[writer] as typeof write));
    const { quickly, fault } = readBoth(inPieces(bytes, 1000));
    expect(fault).toBeUndefined();
    // A piece's last record is cut, and the first piece has the pattern.
    expect(quickly).toBeGreaterThan(40 - Math.ceil(bytes.length / 1000) * 2 - 12);
  });

  it.each([5, 6, 7, 8, 9, 10])(
    "leaves a response alone that has no pattern, as writer %i writes it",
    (writer) => {
      expect(readBoth(inPieces(bodyOf(regular.map(WRITERS[writer] as typeof write)), 700)).quickly).toBe(0);
    },
  );

  const time = '"2026-02-01T00:00:00Z"';
  const odd = [
    ...ODD_TIMES.map((text) => write([text, '{"user_id":"1"}', "5"])),
    ...ODD_DIMENSIONS.map((text) => write([time, text, "5"])),
    ...ODD_TRACES.map((text) => write([time, '{"user_id":"1"}', text])),
    ...["time_bucket", "dimensions", "traces"].map((member) =>
      write([time, '{"user_id":"1"}', "5"]).replace(member, member.replace(/.$/, "x")),
    ),
  ];
  it.each(odd)("reads %s amid a regular response as JSON.parse and the schema do", (record) => {
    const texts = regular.map(write);
    const bytes = bodyOf([...texts.slice(0, 30), record, ...texts.slice(30)]);
    const at = bytes.indexOf(record);
    // The first piece has the pattern. The odd one is behind a boundary, across one, and amid a piece.
    for (const second of [at, at + 20, bytes.length]) {
      const pieces = [bytes.subarray(0, 250), bytes.subarray(250, second), bytes.subarray(second)];
      expect(readBoth(pieces).quickly).toBeGreaterThan(20);
    }
  });

  it.each(GAPS)("reads %j between two records as JSON.parse does", (between) => {
    const bytes = bodyOf(regular.map(write), { at: 30, between });
    expect(readBoth([bytes.subarray(0, 250), bytes.subarray(250)]).quickly).toBeGreaterThan(20);
  });

  it.each([",", ", ", ",\n  ", " ,\t", "\r\n,\r\n"])(
    "reads a piece at once whose records have %j between them",
    (between) => {
      const usage = regular.map(write).join(between);
      const bytes = Buffer.from(`{"stride":{"days":1,"hours":0},"usage":[${usage}]}`);
      const { quickly, batches } = readBoth([bytes.subarray(0, 250), bytes.subarray(250)]);
      expect(quickly).toBeGreaterThan(36);
      expect(batches).toBe(1);
    },
  );

  it("reads more ids than it remembers, in another order each day", () => {
    const users = Array.from(
      { length: 9000 },
      (_, i) => `{"user_id":"${i}","user_email":"${"x".repeat(500)}${i}"}`,
    );
    const days = [users, users.toReversed(), users];
    const all = days.flatMap((ids, at) =>
      ids.map((of, i) => write([`"2026-02-0${at + 1}T00:00:00Z"`, of, String(i)])),
    );
    const { quickly, records } = readBoth(inPieces(bodyOf(all), 65_536));
    expect(records).toHaveLength(27_000);
    // Those of the first bucket are not.
    expect(quickly).toBeGreaterThan(17_500);
  });
});

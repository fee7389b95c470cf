import { isUtf8 } from "node:buffer";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import type { ExportRow } from "../../../src/core/domain/usage/export.ts";
import type { UsageRecord } from "../../../src/core/domain/usage/record.ts";
import { createBillingClient } from "../../../src/core/platform/billing/billing.ts";
import type { PlatformHttp, PlatformResponse } from "../../../src/core/platform/http/http.ts";
import { eventData, readJson } from "../../../src/core/platform/http/read-body.ts";
import { anyJson, bytesOf, type Damaged, damaged, holds, KEY, outcomeOf, responseOf, SEED } from "./fuzz.ts";

const QUERY = {
  start: 0,
  end: 86_400_000,
  meter: "traces",
  groupBy: "project",
  workspaceIds: ["w"],
} as const;
const RESPONSE_CODES = ["response_cut", "response_invalid", "response_too_large"];

const clientOf = (response: PlatformResponse) =>
  createBillingClient({ get: async () => response } as unknown as PlatformHttp);

/** Mostly what a server sends, now and then something else: a response of many fields is refused for one of them. */
const mostly = <T, U>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>) =>
  fc.oneof({ weight: 30, arbitrary: usual }, { weight: 1, arbitrary: odd });
const wild = <T>(value: fc.Arbitrary<T>) => mostly(value, anyJson);

const text = fc.oneof(
  fc.constantFrom(
    "",
    "(none)",
    KEY,
    "é漢🚀",
    '"',
    "\t=1",
    "a\r\nb",
    "__proto__",
    "11111111-AAAA-3333-4444-555555555555",
  ),
  fc.string({ maxLength: 12 }),
);
const odd = mostly(text, fc.constantFrom("\u0000", "\ud800", "x".repeat(600)));
const time = mostly(
  fc.constantFrom(
    "2026-01-05T00:00:00Z",
    "2026-01-05T00:00:00+05:30",
    "2026-01-05 00:00:00",
    "2026-01-05T24:00:00Z",
  ),
  fc.constantFrom("", "yesterday", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59Z", "+275760-09-13T00:00:00Z"),
);
const count = mostly(
  fc.oneof(fc.nat(), fc.constantFrom(0, -0, 2 ** 53 - 1)),
  fc.constantFrom(-1, 0.5, 2 ** 53, 1e308, Number.MAX_VALUE),
);

const record = fc.record(
  {
    time_bucket: wild(time),
    dimensions: wild(
      fc.record(
        { project_id: wild(odd), project_name: wild(odd), workspace_id: wild(odd) },
        { requiredKeys: [] },
      ),
    ),
    traces: wild(count),
    more: anyJson,
  },
  { requiredKeys: ["dimensions"] },
);
const response = fc
  .record(
    {
      stride: wild(fc.record({ days: fc.nat(400), hours: wild(fc.nat(30)) }, { requiredKeys: [] })),
      usage: wild(fc.array(record, { maxLength: 5 })),
    },
    { requiredKeys: ["stride", "usage"] },
  )
  .chain((document) => {
    const json = JSON.stringify(document);
    const twice = `{"usage":[{"dimensions":{}}],${json.slice(1)}`;
    return mostly(
      fc.constantFrom(json, JSON.stringify(document, null, 1), `\ufeff${json}`),
      fc.constant(twice),
    );
  });

test(`JSON answers are read as JSON.parse reads them, or refused (seed ${SEED})`, async () => {
  let read = 0;
  await holds("json", damaged(response), 250, async (input: Damaged) => {
    const bytes = bytesOf(input);
    const records: UsageRecord[] = [];
    const outcome = await outcomeOf(() =>
      clientOf(responseOf(bytes, input.pieceLength)).usage(QUERY, {
        onRecords: (some) => records.push(...some),
      }),
    );
    if ("code" in outcome) return expect(RESPONSE_CODES).toContain(outcome.code);
    read += 1;
    expect(isUtf8(bytes)).toBe(true);
    const document = JSON.parse(bytes.toString("utf8").replace(/^\ufeff/, ""));
    expect(outcome.value.records).toBe(document.usage.length);
    expect(records.map(({ traces, dimensionName }) => [traces, dimensionName])).toEqual(
      document.usage.map((one: { traces?: number; dimensions: Partial<Record<string, string | null>> }) => {
        const { project_id, project_name } = one.dimensions;
        const name = (project_id && project_name) || null;
        return [Math.abs(one.traces ?? 0), name?.toWellFormed().replaceAll("\0", "\ufffd") ?? null];
      }),
    );
    for (const { bucketStart, dimensionId } of records) {
      expect(bucketStart === null || Number.isSafeInteger(bucketStart)).toBe(true);
      expect(dimensionId.isWellFormed()).toBe(true);
    }
  });
  // Else the property says nothing.
  expect(read).toBeGreaterThan(30);
});

test(`small documents are what their schema says, or refused (seed ${SEED})`, async () => {
  const listing = fc.array(
    wild(
      fc.record(
        { id: wild(odd), display_name: wild(odd), is_deleted: wild(fc.boolean()) },
        { requiredKeys: [] },
      ),
    ),
    { maxLength: 3 },
  );
  const one = fc.record({ id: wild(odd), display_name: wild(odd), version: wild(odd) }, { requiredKeys: [] });
  const document = fc.oneof(listing, one, anyJson).map((value) => JSON.stringify(value));
  await holds("document", damaged(document), 80, async (input: Damaged) => {
    const client = () => clientOf(responseOf(bytesOf(input), input.pieceLength));
    for (const call of ["workspaces", "organization", "info"] as const) {
      const outcome = await outcomeOf<unknown>(() => client()[call]());
      if ("code" in outcome) expect(RESPONSE_CODES).toContain(outcome.code);
      else
        for (const { id = "x" } of [outcome.value].flat() as { id?: string }[])
          expect(id.length).toBeGreaterThan(0);
    }
    const outcome = await outcomeOf(() =>
      readJson(responseOf(bytesOf(input), input.pieceLength), z.unknown()),
    );
    if ("value" in outcome)
      expect(outcome.value).toEqual(
        JSON.parse(
          bytesOf(input)
            .toString("utf8")
            .replace(/^\ufeff/, "")
            .trim(),
        ),
      );
  });
});

const HEADER = "Time Bucket Start,Time Bucket End,Workspace ID,Project ID,Project Name,Traces";
const quoted = (cell: string) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
const cell = odd.map((text) => quoted(text.toWellFormed()));
const row = fc
  .tuple(
    time,
    time,
    cell,
    cell,
    cell,
    fc.oneof(
      { weight: 12, arbitrary: count.map(String) },
      { weight: 2, arbitrary: fc.constantFrom("007", "+1", " 1", "1e3", "0x1", "1.0", "9".repeat(16)) },
      cell,
    ),
  )
  .map((cells) => cells.join(","));
const csv = fc
  .tuple(fc.constantFrom("\n", "\r\n"), fc.array(row, { maxLength: 4 }), fc.boolean(), fc.boolean())
  .map(
    ([end, rows, isEnded, hasMark]) =>
      `${hasMark ? "\ufeff" : ""}${[HEADER, ...rows].join(end)}${isEnded ? end : ""}`,
  );

test(`exports are read as csv-parse reads them, or refused (seed ${SEED})`, async () => {
  let read = 0;
  await holds("csv", damaged(csv), 200, async (input: Damaged) => {
    const bytes = bytesOf(input);
    const exported = await outcomeOf(() => clientOf(responseOf(bytes, input.pieceLength)).exportCsv(QUERY));
    if ("code" in exported) return expect(RESPONSE_CODES).toContain(exported.code);
    const outcome = await outcomeOf(() =>
      exported.value.read(async (rows) => {
        const all: ExportRow[] = [];
        for await (const some of rows()) all.push(...some);
        return all;
      }),
    );
    await exported.value.close();
    if ("code" in outcome) return expect(RESPONSE_CODES).toContain(outcome.code);
    read += 1;
    expect(isUtf8(bytes)).toBe(true);
    const [head = [], ...cells] = parse(bytes, {
      bom: true,
      record_delimiter: ["\r\n", "\n"],
      relax_column_count: true,
    }).filter((one: string[]) => one.length > 1 || one[0] !== "") as string[][];
    const at = head.map((name) => name.trim()).indexOf("Traces");
    expect(outcome.value.map(({ traces }) => String(traces))).toEqual(cells.map((one) => one[at]));
    expect(cells.every((one) => one.length === head.length)).toBe(true);
  });
  expect(read).toBeGreaterThan(30);
});

test(`server-sent events are handed out as they were sent, or refused (seed ${SEED})`, async () => {
  const line = fc
    .oneof(
      odd,
      anyJson.map((value) => JSON.stringify(value)),
    )
    .map((text) => text.toWellFormed().replaceAll(/[\r\n]/g, " "));
  const event = fc
    .tuple(fc.constantFrom("data: ", "data:", "event: ", ": ", "id: ", "retry: ", ""), line)
    .map(([field, text]) => `${field}${text}`);
  const stream = fc
    .tuple(fc.array(event, { maxLength: 8 }), fc.constantFrom("\n", "\r\n", "\r", "\n\n", "\r\n\r\n"))
    .map(([events, end]) => `${events.join(end)}${end}${end}`);
  await holds("events", damaged(stream), 120, async (input: Damaged) => {
    const bytes = bytesOf(input);
    const read = async (pieceLength: number) => {
      const all: string[] = [];
      for await (const data of eventData(responseOf(bytes, pieceLength))) all.push(data);
      return all;
    };
    const [pieces, whole] = [
      await outcomeOf(() => read(input.pieceLength)),
      await outcomeOf(() => read(1_000_000)),
    ];
    if ("code" in pieces) return expect(RESPONSE_CODES).toContain(pieces.code);
    expect(pieces).toEqual(whole);
  });
});

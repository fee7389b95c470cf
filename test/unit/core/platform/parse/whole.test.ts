import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { UsageRecord } from "../../../../../src/core/domain/usage/record.ts";
import { clientOf, framed, QUERY, rawServer, rejection } from "../http/raw-server.ts";

const BODY = JSON.stringify({
  stride: { days: 1, hours: 0 },
  usage: [
    {
      time_bucket: "2026-01-05T00:00:00Z",
      dimensions: { project_id: "p1", project_name: 'A "漢" 🚀}]' },
      traces: 4,
    },
    { time_bucket: "2026-01-06T00:00:00Z", dimensions: { project_id: "p2", project_name: null }, traces: 38 },
  ],
});
const GZIP = gzipSync(BODY);

const CASES = (["length", "chunked", "close"] as const).flatMap((framing) =>
  [false, true].flatMap((gzip) =>
    (["keep-alive", "close"] as const).map((connection) => ({ framing, gzip, connection })),
  ),
);

function responseOf({ framing, gzip, connection }: (typeof CASES)[number]) {
  const headers = [
    ...(gzip ? ["content-encoding: gzip"] : []),
    ...(framing === "close" ? [] : [`connection: ${connection}`]),
  ];
  return framed(gzip ? GZIP : BODY, framing, headers);
}

async function forEach(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (next < count) await run(next++);
    }),
  );
}

describe("The client", () => {
  it.each(CASES)("accepts a whole response: $framing, gzip $gzip, connection $connection", async (way) => {
    const server = await rawServer(() => ({
      bytes: responseOf(way),
      closing: way.framing === "close" ? "end" : "keep",
    }));
    const records: UsageRecord[] = [];
    const response = await clientOf(server.url).usage(QUERY, {
      onRecords: (batch) => records.push(...batch),
    });
    expect(response).toEqual({ stride: "day", records: 2 });
    expect(records.map(({ traces }) => traces)).toEqual([4, 38]);
    expect(records[0]?.dimensionName).toBe('A "漢" 🚀}]');
  });

  // Every byte of the response is a place where the connection may be lost.
  it.each(CASES)("refuses every cut: $framing, gzip $gzip, connection $connection", async (way) => {
    const whole = responseOf(way);
    const head = whole.indexOf("\r\n\r\n") + 4;
    const cuts = whole.length - head;
    const server = await rawServer((request) => {
      const [, at, then] = /X-Organization-Id: (\d+)-(\w+)/i.exec(request) ?? [];
      return { bytes: whole.subarray(0, head + Number(at)), closing: then === "reset" ? "reset" : "end" };
    });
    for (const then of ["end", "reset"]) {
      await forEach(cuts, async (at) => {
        const client = clientOf(server.url, { organizationId: `${at}-${then}` });
        const error = await rejection(client.usage(QUERY, { onRecords: () => {} }));
        await client.close();
        // A reset may overtake the bytes before it, the head included.
        const codes = then === "reset" ? ["response_cut", "network"] : ["response_cut"];
        expect(codes, `cut at ${at} of ${cuts}, ${then}: ${error}`).toContain(
          (error as { code: string }).code,
        );
        expect(error).toMatchObject({ retryable: true });
      });
    }
  });

  const GZIPPED = ["content-encoding: gzip"];
  const refusalOf = async (bytes: Buffer, more = {}) => {
    const server = await rawServer(() => ({ bytes, closing: "end", ...more }));
    return rejection(clientOf(server.url).usage(QUERY, { onRecords: () => {} }));
  };

  it.each(["length", "chunked", "close"] as const)(
    "refuses bytes after the gzip trailer: %s",
    async (framing) => {
      for (const more of [
        Buffer.alloc(1),
        Buffer.alloc(5000),
        Buffer.from("x"),
        Buffer.from("\x1f\x8b", "latin1"),
        GZIP.subarray(0, 9),
      ]) {
        const bytes = framed(Buffer.concat([GZIP, more]), framing, GZIPPED);
        expect(await refusalOf(bytes)).toMatchObject({ code: "response_cut", retryable: true });
      }
    },
  );

  it("refuses a gzip with a wrong checksum", async () => {
    const broken = Buffer.from(GZIP);
    const crc = broken.length - 8;
    broken[crc] = (broken[crc] ?? 0) ^ 1;
    expect(await refusalOf(framed(broken, "length", GZIPPED))).toMatchObject({ code: "response_cut" });
  });

  it("refuses an encoding that it did not request", async () => {
    expect(await refusalOf(framed(BODY, "length", ["content-encoding: br"]))).toMatchObject({
      code: "response_invalid",
      message: expect.stringContaining("encoded as br"),
    });
  });
});

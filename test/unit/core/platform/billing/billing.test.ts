import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { ExportRow } from "../../../../../src/core/domain/usage/export.ts";
import type { BillingClient } from "../../../../../src/core/platform/billing/billing.ts";
import { clientOf, framed, KEY, QUERY, rawServer, rejection, status } from "../http/raw-server.ts";

const RESPONSE = '{"stride":{"days":1,"hours":0},"usage":[{"dimensions":{"project_id":"p"},"traces":1}]}';
const CSV =
  "Time Bucket Start,Time Bucket End,Project ID,Project Name,Traces\n2026-01-05T00:00:00Z,2026-01-06T00:00:00Z,p,n,12\n";
const NOTHING = { onRecords: () => {} };

describe("usage", () => {
  it("sends the parameters of the API over one kept-alive connection", async () => {
    const server = await rawServer(() => status("200 OK", RESPONSE));
    const client = clientOf(`${server.url}/prefix/`, { organizationId: "org-1", connections: 1 });
    await client.usage({ ...QUERY, workspaceIds: ["w1", "w2"] }, NOTHING);
    await client.usage({ ...QUERY, start: QUERY.start + 1 }, NOTHING);
    expect(server.connections()).toBe(1);
    const [first = "", second = ""] = server.requests;
    const target = new URL(first.split(" ")[1] ?? "", "http://h");
    expect(target.pathname).toBe("/prefix/api/v1/orgs/current/billing/granular-usage");
    expect([...target.searchParams]).toEqual([
      ["start_time", "2026-01-05T00:00:00Z"],
      ["end_time", "2026-01-07T00:00:00Z"],
      ["group_by", "project"],
      ["workspace_ids", "w1"],
      ["workspace_ids", "w2"],
    ]);
    expect(first).toContain(`x-api-key: ${KEY}`);
    expect(first.toLowerCase()).toContain("x-organization-id: org-1");
    expect(first.toLowerCase()).toContain("accept-encoding: gzip");
    expect(second).toContain("start_time=2026-01-05T00%3A00%3A00.001Z");
  });

  it("sends no organisation if none is set, and refuses a request without a workspace", async () => {
    const server = await rawServer(() => status("200 OK", RESPONSE));
    const client = clientOf(server.url);
    await client.usage(QUERY, NOTHING);
    expect(server.requests[0]?.toLowerCase()).not.toContain("organization");
    expect(await rejection(client.usage({ ...QUERY, workspaceIds: [] }, NOTHING))).toMatchObject({
      code: "no_workspaces",
    });
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['{"days":0,"hours":1}', "hour"],
    ['{"days":1,"hours":0}', "day"],
    ['{"days":7}', "week"],
    ['{"days":30,"hours":null}', "month"],
    ['{"days":365,"hours":0,"x":[]}', "year"],
    ['{"days":0,"hours":24}', "day"],
    ['{"days":2,"hours":0}', undefined],
    ['{"days":1,"hours":1}', undefined],
    ["{}", undefined],
  ])("reads the stride %s as %s, of an empty response too", async (wire, stride) => {
    const server = await rawServer(() => status("200 OK", `{"usage":[],"stride":${wire}}`));
    expect(await clientOf(server.url).usage(QUERY, NOTHING)).toMatchObject({ stride, records: 0 });
  });

  it.each(["null", "1", '"day"', '{"days":1.5}', '{"days":"1"}', '{"days":-1}'])(
    "refuses the stride %s",
    async (wire) => {
      const server = await rawServer(() => status("200 OK", `{"usage":[],"stride":${wire}}`));
      expect(await rejection(clientOf(server.url).usage(QUERY, NOTHING))).toMatchObject({
        code: "response_invalid",
        retryable: false,
        message: expect.stringContaining("stride"),
      });
    },
  );

  it("throws the receiver's error unchanged and stays usable", async () => {
    const server = await rawServer(() => status("200 OK", RESPONSE));
    const client = clientOf(server.url);
    const mine = new RangeError("mine");
    const error = await rejection(
      client.usage(QUERY, {
        onRecords: () => {
          throw mine;
        },
      }),
    );
    expect(error).toBe(mine);
    expect(await client.usage(QUERY, NOTHING)).toMatchObject({ records: 1 });
  });
});

async function exported(client: BillingClient) {
  const response = await client.exportCsv(QUERY);
  try {
    const rows: ExportRow[] = [];
    await response.read(async (read) => {
      rows.length = 0;
      for await (const batch of read()) rows.push(...batch);
    });
    return { rows, whole: response.whole };
  } finally {
    await response.close();
  }
}

describe("exportCsv", () => {
  it.each([
    ["length", false, true],
    ["chunked", false, true],
    ["close", true, true],
    ["close", false, false],
  ] as const)("knows whether the end is proved: %s, gzip %s", async (framing, gzip, whole) => {
    const bytes = framed(gzip ? gzipSync(CSV) : CSV, framing, gzip ? ["content-encoding: gzip"] : []);
    const server = await rawServer(() => ({ bytes, closing: framing === "close" ? "end" : "keep" }));
    const { rows, ...response } = await exported(clientOf(server.url));
    expect(response).toEqual({ whole });
    expect(rows).toMatchObject([{ dimensionId: "p", traces: 12, line: 2, bucketEnd: Date.UTC(2026, 0, 6) }]);
    expect(server.requests[0]).toContain("/granular-usage/export?start_time=");
  });
});

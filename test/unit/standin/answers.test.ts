import { describe, expect, test } from "vitest";
import type { StandinOptions } from "../../../src/local/standin/server.ts";
import { GRANULAR_USAGE, rawGet, setup } from "./setup.ts";

const DAY = { start: "2026-06-02", end: "2026-06-03" };
const ID = "00000000-0000-4000-8000-000000000000";

/** Status and body of a billing request with exactly this query. */
async function ask(query: string, options: StandinOptions = {}) {
  const { get } = await setup(options);
  const response = await get(`${GRANULAR_USAGE}?${query}`);
  return { status: response.status, body: (await response.json()) as { detail: { loc: unknown[] }[] } };
}

const GOOD = `start_time=2026-06-02&end_time=2026-06-03&workspace_ids=${ID}`;

describe("queries", () => {
  test.each([
    ["start_time=2026-06-02&workspace_ids=x", ["end_time"], ["workspace_ids", 0]],
    ["", ["start_time"], ["end_time"], ["workspace_ids"]],
    [`start_time=2026-13-02&end_time=soon&workspace_ids=${ID}`, ["start_time"], ["end_time"]],
    [`start_time=2026-06-02&end_time=2026-06-02&workspace_ids=${ID}`, ["end_time"]],
    [`start_time=2026-06-02T00:00:00+02:00&end_time=2026-06-03&workspace_ids=${ID}`, ["start_time"]],
    [`start_time=1780000000&end_time=2026-06-03&workspace_ids=${ID}`, ["start_time"]],
    [`start_time=2026-06-02&end_time=2026-06-03&workspace_ids=${ID},${ID}`, ["workspace_ids", 0]],
    ["start_time=2026-06-02&end_time=2026-06-03&workspace_ids=", ["workspace_ids", 0]],
    [
      `start_time=2026-06-02&end_time=2026-06-03&workspace_ids[]=${ID}`,
      ["workspace_ids[]"],
      ["workspace_ids"],
    ],
    [`${GOOD}&group_by=trace_tier`, ["group_by"]],
    [`${GOOD}&group_by=Project`, ["group_by"]],
    [`${GOOD}&group_by=user&group_by=user`, ["group_by"]],
    [`${GOOD}&kind=traces`, ["kind"]],
    [`${GOOD}&limit=5`, ["limit"]],
  ])("the query %j is refused with each wrong parameter", async (query, ...places) => {
    const { status, body } = await ask(query);
    expect(status).toBe(422);
    expect(body.detail.map(({ loc }) => loc)).toEqual(
      expect.arrayContaining(places.map((p) => ["query", ...p])),
    );
    expect(body.detail).toHaveLength(places.length);
    for (const one of body.detail) {
      expect(one).toEqual({ loc: expect.any(Array), msg: expect.any(String), type: expect.any(String) });
    }
  });

  test.each([
    "start_time=2026-06-02T00:00:00&end_time=2026-06-03T00:00:00.000Z",
    "start_time=2026-06-02T00:00&end_time=2026-06-03T00:00:00z",
    "start_time=2026-06-02T02:00:00%2B02:00&end_time=2026-06-02T20:00:00-04:00",
  ])("the range %s is the same day in UTC", async (times) => {
    const { standin, usage, get } = await setup();
    const [workspace] = standin.organisation.workspaces;
    const response = await get(`${GRANULAR_USAGE}?${times}&workspace_ids=${workspace?.id.toUpperCase()}`);
    expect(await response.json()).toEqual(await usage({ ...DAY, workspaces: [workspace?.id ?? ""] }));
  });
});

describe("refusals", () => {
  test("a missing or wrong key gets 401, and another organisation or workspace 403", async () => {
    const { standin, target, get } = await setup();
    const none = await fetch(standin.url + target(DAY));
    const wrong = await get(target(DAY), { "x-api-key": "no" });
    for (const response of [none, wrong]) {
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({ detail: "Invalid token" });
    }
    const other = await get(target(DAY), { "x-organization-id": ID });
    expect([other.status, await other.json()]).toEqual([403, { error: "Forbidden" }]);
    expect((await get(target(DAY), { "x-organization-id": standin.organisation.id })).status).toBe(200);
    expect((await get(target(DAY), { "x-tenant-id": ID })).status).toBe(403);
  });
});

describe("CSV", () => {
  test("a cell that starts like a formula gets one tab, and no other cell does", async () => {
    const { standin, csv } = await setup();
    const week = { start: "2026-07-06", end: "2026-07-13" };
    const known = new Map(standin.organisation.projects.map(({ id, name }) => [id, name]));
    const guarded = new Set<string>();
    for (const line of await csv({ ...week, by: "project" })) {
      const name = known.get(line["Project ID"] ?? "") ?? "";
      const starts = ["=", "+", "-", "@", "\t", "\r"].find((character) => name.startsWith(character));
      expect(line["Project Name"]).toBe(starts === undefined ? name : `\t${name}`);
      if (starts !== undefined) guarded.add(starts);
    }
    expect([...guarded].sort()).toEqual(["\t", "+", "-", "=", "@"]);
    const keys = (await csv({ ...week, by: "api_key" })).map((line) => line["API Key Short Key"]);
    expect(keys).toContainEqual(expect.stringMatching(/^\t-sk/));
  });
});

test.each(["length", "chunked", "close"] as const)(
  "framing %s sends the same whole answer",
  async (framing) => {
    const { standin, usage, get, target } = await setup({ framing });
    const plain = await setup();
    expect(await usage(DAY)).toEqual(await plain.usage(DAY));
    const raw = await rawGet(standin.url, target(DAY), { "x-api-key": standin.apiKey, connection: "close" });
    expect(/content-length/.test(raw.head)).toBe(framing === "length");
    expect(/transfer-encoding/.test(raw.head)).toBe(framing === "chunked");
    const gzip = await get(target(DAY), { "accept-encoding": "gzip" });
    expect(gzip.headers.get("content-encoding")).toBe("gzip");
    const identity = await get(target(DAY), { "accept-encoding": "gzip;q=0" });
    expect(identity.headers.get("content-encoding")).toBe(null);
    expect(await identity.json()).toEqual(await gzip.json());
  },
);

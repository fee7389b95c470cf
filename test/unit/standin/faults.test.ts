import { constants, gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type FaultStep, faultNames } from "../../../src/local/standin/faults.ts";
import { poll } from "../../support/poll.ts";
import { rawGet, setup } from "./setup.ts";

const ASK = { start: "2026-06-01", end: "2026-07-01", by: "project" };

/** The right answer, and the bytes on a bare socket while the fault was set. */
async function onWire(fault: FaultStep["fault"], with_: { csv?: "/export"; gzip?: boolean } = {}) {
  const bench = await setup();
  const path = bench.target(ASK, with_.csv);
  const text = await (await bench.get(path)).text();
  bench.standin.faults.script({ fault });
  const came = await rawGet(bench.standin.url, path, {
    "x-api-key": bench.standin.apiKey,
    ...(with_.gzip ? { "accept-encoding": "gzip" } : {}),
    // A whole answer must end too.
    ...(fault.kind === "whole" ? { connection: "close" } : {}),
  });
  expect(bench.standin.faults.fired).toBe(1);
  return { ...came, text, bytes: Buffer.from(text) };
}

describe("cut bodies on the wire", () => {
  test("a cut `length` announces more bytes than it sends", async () => {
    const { head, body, bytes, end } = await onWire({ kind: "cut", framing: "length" });
    expect(head).toContain(`content-length: ${bytes.length}`);
    expect(body).toEqual(bytes.subarray(0, Math.floor(bytes.length / 2)));
    expect(end).toBe("closed");
  });

  test("a cut `chunked` sends every byte, but not the last chunk", async () => {
    const { head, body, text } = await onWire({ kind: "cut", framing: "chunked", at: "all" });
    expect(head).toContain("transfer-encoding: chunked");
    expect(body.toString()).toBe(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  });

  test("a cut `close` gives no sign that half of the body is missing", async () => {
    const { head, body, bytes } = await onWire({ kind: "cut", framing: "close" });
    expect(head).toContain("connection: close");
    expect(head).not.toMatch(/content-length|transfer-encoding/);
    expect(body).toEqual(bytes.subarray(0, Math.floor(bytes.length / 2)));
  });

  test("a cut `close` at a line ends the CSV with a whole line", async () => {
    const { body, text } = await onWire({ kind: "cut", framing: "close", at: "line" }, { csv: "/export" });
    expect(body.length).toBeGreaterThan(text.length / 3);
    expect(body.at(-1)).toBe(0x0a);
    expect(text.startsWith(body.toString())).toBe(true);
  });

  test("a cut `gzip` is whole for HTTP, without gzip's trailer", async () => {
    const { head, body, text } = await onWire({ kind: "cut", framing: "gzip" }, { gzip: true });
    expect(head).toContain(`content-length: ${body.length}`);
    expect(() => gunzipSync(body)).toThrow("unexpected end of file");
    expect(gunzipSync(body, { finishFlush: constants.Z_SYNC_FLUSH }).toString()).toBe(text);
  });

  test("a cut `gzip` hits only a request that accepts gzip", async () => {
    const { standin, get, target } = await setup();
    standin.faults.script({ fault: { kind: "cut", framing: "gzip" } });
    expect((await get(target(ASK), { "accept-encoding": "identity" })).status).toBe(200);
    expect(standin.faults.fired).toBe(0);
  });
});

describe("other faults on the wire", () => {
  test("`whole` sends the answer in chunks, or until the connection closes", async () => {
    const chunked = await onWire({ kind: "whole", framing: "chunked" });
    expect(chunked.body.toString()).toMatch(/\r\n0\r\n\r\n$/);
    const closed = await onWire({ kind: "whole", framing: "close" }, { csv: "/export" });
    expect(closed.head).not.toMatch(/content-length|transfer-encoding/);
    expect(closed.body.toString()).toBe(closed.text);
  });

  test("`slow` sends the whole answer over the given time", async () => {
    const from = performance.now();
    const { body, text } = await onWire({ kind: "slow", ms: 50 });
    expect(performance.now() - from).toBeGreaterThan(45);
    expect(body.toString()).toBe(text);
  });

  test("`reset` sends no answer and resets the socket", async () => {
    expect(await onWire({ kind: "reset" })).toMatchObject({ end: "reset", head: "" });
  });

  test("`hang` lasts until the client gives up", async () => {
    const { standin, get, target } = await setup();
    standin.faults.script({ fault: { kind: "hang" } });
    const stop = new AbortController();
    const answer = fetch(standin.url + target(ASK), {
      headers: { "x-api-key": standin.apiKey },
      signal: stop.signal,
    });
    await Promise.all([
      expect(answer).rejects.toThrow("stop"),
      poll(() => standin.faults.fired === 1).then(() => stop.abort(new Error("stop"))),
    ]);
    expect((await get(target(ASK))).status).toBe(200);
  });

  test("a server with a hanging request can be closed", async () => {
    const { standin, get, target } = await setup();
    standin.faults.script({ fault: { kind: "hang" } });
    const answer = get(target(ASK)).catch(() => "dropped");
    await expect.poll(() => standin.requests.count).toBe(1);
    await standin.close();
    expect(await answer).toBe("dropped");
  });

  test("`status` sets Retry-After and a body that is not JSON", async () => {
    const { standin, get, target } = await setup();
    standin.faults.script(
      { fault: { kind: "status", status: 429 } },
      { fault: { kind: "status", status: 429, retry_after: 7 } },
      { fault: { kind: "status", status: 503 } },
      { fault: { kind: "status", status: 403, content_type: "text/html", body: "<html>" } },
    );
    const answers = [];
    for (let i = 0; i < 5; i++) answers.push(await get(target(ASK)));
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 503, 403, 200]);
    expect(answers.map(({ headers }) => headers.get("retry-after"))).toEqual([null, "7", null, null, null]);
    expect(await answers[3]?.text()).toBe("<html>");
    expect(standin.requests.recent.map(({ fault }) => fault)).toEqual([
      "status",
      "status",
      "status",
      "status",
      null,
    ]);
  });

  test("`stride` sends right counts in the next coarser stride", async () => {
    const { standin, usage } = await setup();
    standin.faults.script({ fault: { kind: "stride" } });
    expect((await usage(ASK)).stride).toEqual({ days: 7, hours: 0 });
    expect((await usage(ASK)).stride).toEqual({ days: 1, hours: 0 });
  });
});

describe("requests that meet a fault", () => {
  test("a step skips, matches path and query, and ends after its times", async () => {
    const { standin, get, target } = await setup();
    const [one = "", two = ""] = standin.organisation.workspaces.map(({ id }) => id);
    standin.faults.script({
      fault: { kind: "status", status: 500 },
      skip: 1,
      times: 2,
      match: { path: "/export", query: { group_by: "project", workspace_ids: two } },
    });
    const status = async (csv: "/export" | undefined, workspaces: string[]) =>
      (await get(target({ ...ASK, workspaces }, csv))).status;
    expect(await status(undefined, [one, two])).toBe(200);
    expect(await status("/export", [one])).toBe(200);
    const matching = [0, 0, 0, 0].map(() => status("/export", [one, two]));
    expect((await Promise.all(matching)).sort()).toEqual([200, 200, 500, 500]);
  });

  test("a step may hit only what is asked of some days, and only in one stride", async () => {
    const { standin, get, target } = await setup();
    standin.faults.script({
      fault: { kind: "status", status: 422 },
      times: 100,
      match: { during: { from: "2026-06-10T00:00:00Z", to: "2026-06-12T00:00:00Z" }, stride: "day" },
    });
    const status = async (start: string, end: string) => (await get(target({ start, end }))).status;
    expect(await status("2026-06-11", "2026-06-12")).toBe(422);
    expect(await status("2026-06-01", "2026-07-01")).toBe(422);
    expect(await status("2026-06-01", "2026-06-10")).toBe(200);
    expect(await status("2026-06-12", "2026-06-20")).toBe(200);
    expect(await status("2026-06-11T03:00:00Z", "2026-06-11T20:00:00Z")).toBe(200);
    expect(await status("2026-05-01", "2026-07-01")).toBe(200);
    expect((await get("/api/v1/info")).status).toBe(200);
  });

  test("rates come from a seed: the same requests meet faults, about as often as set", async () => {
    const drawn = async () => {
      const { standin, get } = await setup({ faults: { seed: 5, rates: { "500": 0.2, "429": 0.1 } } });
      for (let i = 0; i < 100; i++) await (await get("/api/v1/info")).text();
      return standin.requests.recent.map(({ status }) => status);
    };
    const [one, two] = [await drawn(), await drawn()];
    expect(one).toEqual(two);
    expect(one.filter((status) => status === 500).length).toBeGreaterThan(8);
    expect(one.filter((status) => status === 500).length).toBeLessThan(35);
    expect(one).toContain(429);
  });

  test("each named rate can be set, and together they may not exceed 1", async () => {
    const { standin } = await setup();
    for (const name of faultNames) standin.faults.set({ rates: { [name]: 1 } });
    expect(() => standin.faults.set({ rates: { "500": 0.6, reset: 0.6 } })).toThrow("more than 1");
  });
});

import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { listenInTest } from "../../../support/listen.ts";
import { startProxy } from "../../../support/proxy.ts";
import { setup } from "../../../support/source.ts";
import { dump } from "../../../support/tables.ts";
import { aRecord, firstDay } from "./bench.ts";

/** What a cut, damaged or foreign export may say, and what it may not. */

describe("an export that cannot be trusted", () => {
  test("is not compared where every attempt is cut, and the result says so", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    await bench.sql("UPDATE usage.dated_record SET traces = traces + 1");
    const before = await dump(bench);
    bench.standin.faults.script({
      fault: { kind: "cut", framing: "length", at: "line" },
      times: 8,
      match: { path: "/export", query: { group_by: "user" } },
    });
    const result = await bench.reconcile({ groupings: ["user"] });
    expect(result).toMatchObject({ compared: 0, differences: [] });
    expect(result.failures.map(({ code }) => code)).toEqual(["response_cut"]);
    expect(await dump(bench)).toEqual(before);
    bench.standin.faults.script({
      fault: { kind: "cut", framing: "chunked", at: "line" },
      times: 3,
      match: { path: "/export" },
    });
    expect((await bench.reconcile({ groupings: ["user"] })).differences.length).toBeGreaterThan(0);
  });

  test("without a proven end may show differing rows, never missing ones", async () => {
    const bench = await setup({ workspaces: [0], standin: { framing: "close", compress: false } });
    await bench.sync();
    const changed = await aRecord(bench);
    await bench.sql(
      "UPDATE usage.dated_record SET traces = traces + 3 WHERE series_id = $1 AND bucket_start = $2",
      [changed.series_id, firstDay(bench)],
    );
    bench.standin.faults.script({
      fault: { kind: "cut", framing: "close", at: "line" },
      times: 1,
      match: { path: "/export" },
    });
    const cut = await bench.reconcile({ groupings: ["project"] });
    expect(cut.differences.filter(({ kind }) => kind !== "traces_differ")).toEqual([]);
    const whole = await bench.reconcile({ groupings: ["project"] });
    expect(whole.differences.map(({ kind }) => kind)).toEqual(["traces_differ"]);
    await bench.sql(
      "UPDATE usage.dated_record SET traces = traces - 3 WHERE series_id = $1 AND bucket_start = $2",
      [changed.series_id, firstDay(bench)],
    );
  });

  test.each([1, 2])(
    "that ends %s characters within the last row is a cut, and no count differs",
    async (lost) => {
      const bench = await setup({ workspaces: [0] });
      await bench.sync();
      // The last row of the export has a number of two digits; its end is gone, and the body is sent on as if it were whole.
      const cut = (text: string) =>
        `${text.trimEnd().slice(0, text.trimEnd().lastIndexOf(",") + 1)}10`.slice(0, -lost);
      let left = 1;
      const proxy = await startProxy(bench.standin.url, ({ url, text }) =>
        url.pathname.endsWith("/export") && left-- > 0 ? cut(text) : undefined,
      );
      const requested = { groupings: ["project"] } as const;
      expect(await bench.reconcile(requested, { baseUrl: proxy.url })).toMatchObject({
        open: 0,
        failures: [],
        requests: 2,
      });
      expect(await bench.sql("SELECT FROM usage.difference WHERE compared_with = 'export'")).toEqual([]);
      const proved = await bench.sql("SELECT scope_id, period_start, period_end FROM usage.reconciled");
      expect(proved).toHaveLength(1);
      left = 100;
      const always = await bench.reconcile(requested, { baseUrl: proxy.url });
      expect(always).toMatchObject({ open: 0, compared: 0, failures: [{ code: "response_cut" }] });
      expect(await bench.sql("SELECT FROM usage.difference WHERE compared_with = 'export'")).toEqual([]);
      expect(await bench.sql("SELECT scope_id, period_start, period_end FROM usage.reconciled")).toEqual(
        proved,
      );
    },
  );

  test("without a proven end never shows a part of a sum as a differing count", async () => {
    const bench = await setup({ workspaces: [0], standin: { framing: "close", compress: false } });
    await bench.sync();
    const bytes = async (url: URL) => {
      const key = { "x-api-key": bench.standin.apiKey };
      const [head = "", ...rows] = (await (await fetch(url, { headers: key })).text())
        .trimEnd()
        .split("\r\n");
      const half = (row: string) => row.replace(/\d+$/, (n) => String(Math.floor(Number(n) / 2)));
      return [head, ...rows.map(half), rows[0], ""].join("\r\n");
    };
    const server = createServer(async (socket) => {
      socket.once("data", async (request) => {
        const path = /^GET (\S+)/.exec(request.toString())?.[1] ?? "/";
        const url = new URL(path, bench.standin.url);
        if (path.includes("/export")) {
          socket.end(
            `HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\nconnection: close\r\n\r\n${await bytes(url)}`,
          );
          return;
        }
        const response = await fetch(url, { headers: { "x-api-key": bench.standin.apiKey } });
        socket.end(
          `HTTP/1.1 ${response.status} OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n${await response.text()}`,
        );
      });
    });
    const baseUrl = `http://127.0.0.1:${await listenInTest(server)}`;
    const result = await bench.reconcile({ groupings: ["api_key"] }, { baseUrl });
    expect(result).toMatchObject({ failures: [], windows: 1 });
    expect(
      result.differences.map(({ kind, storedTraces, exportTraces }) => [
        kind,
        (exportTraces ?? 0) > (storedTraces ?? 0),
      ]),
    ).toEqual([["traces_differ", true]]);
  });
});

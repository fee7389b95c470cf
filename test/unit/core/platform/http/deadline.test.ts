import { createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../../../../src/core/base/clock.ts";
import type { PlatformHttpOptions } from "../../../../../src/core/platform/http/http.ts";
import { listenInTest } from "../../../../support/listen.ts";
import { clientOf, QUERY, rejection } from "./raw-server.ts";

/** Time passes only when a test says so. */
class ManualClock implements Clock {
  #now = 0;
  readonly #waits = new Set<{ at: number; end: () => void }>();
  now = () => this.#now;
  wait = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const one = { at: this.#now + ms, end: resolve };
      this.#waits.add(one);
      signal?.addEventListener("abort", () => {
        this.#waits.delete(one);
        reject(signal.reason);
      });
    });
  pass(ms: number) {
    this.#now += ms;
    for (const one of this.#waits) if (one.at <= this.#now && this.#waits.delete(one)) one.end();
  }
  get waiting() {
    return this.#waits.size;
  }
}

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n";
const RECORD = '{"time_bucket":"2026-01-05T00:00:00Z","dimensions":{"project_id":"p"},"traces":1}';

const chunk = (bytes: string | Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), Buffer.from(bytes), Buffer.from("\r\n")]);

/** A server that responds every request with `answer`, which may take as long as it likes. */
async function server(response: (socket: Socket, n: number) => unknown): Promise<string> {
  let requests = 0;
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => void response(socket, requests++));
  });
  return `http://127.0.0.1:${await listenInTest(listener)}`;
}

const turn = () => new Promise<void>((next) => setImmediate(next));

/** `step` after `step` until `work` ends, in time that does not pass. Without a deadline it fails instead of hanging. */
async function until<T>(work: Promise<T>, step: () => unknown = () => {}): Promise<T> {
  const startedAt = performance.now();
  let isOver = false;
  const watched = work.finally(() => {
    isOver = true;
  });
  watched.catch(() => {});
  while (!isOver) {
    if (performance.now() - startedAt > 120_000) throw new Error("it still waits");
    await step();
    await turn();
  }
  return watched;
}

function setup(url: string, options: Partial<PlatformHttpOptions> = {}) {
  const clock = new ManualClock();
  let responses = 0;
  const client = clientOf(url, { clock, onResponse: () => void responses++, ...options });
  return {
    clock,
    afterHead: (step: () => void) => () => void (responses > 0 && step()),
    usage: (onRecords: (records: unknown[]) => void = () => {}, signal?: AbortSignal) =>
      client.usage(QUERY, { onRecords, signal }),
    exportCsv: () => client.exportCsv(QUERY),
    workspaces: () => client.workspaces(),
  };
}

describe("a response that drips a byte every 2 s", () => {
  async function dripped(request: "usage" | "exportCsv" | "workspaces", head = CHUNKED, whole?: Buffer) {
    let drip = () => {};
    const url = await server((socket) => {
      let at = 0;
      socket.write(`${head}\r\n`);
      drip = () => socket.write(chunk(whole?.subarray(at, ++at) ?? " "));
    });
    const { clock, afterHead, ...calls } = setup(url);
    const step = afterHead(() => {
      drip();
      clock.pass(2000);
    });
    return { clock, error: await until(rejection(calls[request]()), step) };
  }

  test.each(["usage", "exportCsv", "workspaces"] as const)("is ended in its time: %s", async (request) => {
    const { clock, error } = await dripped(request);
    expect(error).toMatchObject({ code: "timeout", retryable: true });
    expect((error as Error).message).toMatch(/only \d+ bytes of the response came within 2 min/);
    expect(clock.now()).toBeLessThan(140_000);
    expect(clock.waiting).toBe(0);
  });

  test("does not hide the status of a refusal, which is known after ten seconds", async () => {
    const { clock, error } = await dripped("usage", CHUNKED.replace("200 OK", "503 X"));
    expect(error).toMatchObject({ code: "server_error", status: 503 });
    expect(clock.now()).toBeLessThan(20_000);
  });
});

describe("a head that does not come", () => {
  test("ends the request, however many informational answers come before it", async () => {
    let response = () => {};
    const url = await server((socket) => {
      response = () => socket.write("HTTP/1.1 102 Processing\r\n\r\n");
    });
    const { clock, usage } = setup(url);
    const step = () => {
      response();
      clock.pass(2000);
    };
    const error = await until(rejection(usage()), step);
    expect(error).toMatchObject({ code: "timeout", retryable: true });
    expect((error as Error).message).toContain("no response began within 2 min 10 s");
  });

  test("ends a request that waits for a connection", async () => {
    let begun = 0;
    const url = await server((socket) => {
      begun += 1;
      socket.write(`${CHUNKED}\r\n`);
    });
    const { clock, afterHead, usage } = setup(url, { connections: 1, timeouts: { graceMs: 10_000_000 } });
    const first = rejection(usage());
    const step = afterHead(() => clock.pass(2000));
    expect(await until(rejection(usage()), step)).toMatchObject({ code: "timeout" });
    expect(begun).toBe(1);
    expect(await until(first, () => clock.pass(10_000))).toMatchObject({ code: "timeout" });
  });
});

describe("a response is read to its end", () => {
  test("that comes slowly, for as long as its size takes", async () => {
    let send = (_: string) => {};
    const url = await server((socket) => {
      socket.write(`${CHUNKED}\r\n`);
      send = (text) => socket.write(chunk(text));
      send('{"stride":{"days":1},"usage":[');
    });
    const { clock, afterHead, usage } = setup(url);
    const piece = `${Array.from({ length: 200 }, () => RECORD).join(",")},`;
    let [sent, received] = [0, 0];
    const response = usage((records) => {
      received += records.length;
    });
    const step = afterHead(() => {
      if (received < sent * 200 || sent > 100) return;
      clock.pass(4000);
      sent += 1;
      send(sent <= 100 ? piece : `${RECORD}]}`);
      if (sent > 100) send("");
    });
    const result = await until(response, step);
    expect(result).toMatchObject({ records: 20_001 });
    expect(clock.now()).toBeGreaterThan(400_000);
  });

  test("although its reader takes an hour for a part of it", async () => {
    const body = `{"stride":{"days":1},"usage":[${RECORD},`;
    let finish = () => {};
    const url = await server((socket) => {
      socket.write(`${CHUNKED}\r\n`);
      socket.write(chunk(body));
      finish = () => socket.write(Buffer.concat([chunk(`${RECORD}]}`), chunk("")]));
    });
    const { clock, usage } = setup(url);
    let isRead = false;
    const response = usage(() => {
      if (!isRead) clock.pass(3_600_000);
      isRead = true;
    });
    await until(response, () => isRead && finish());
    expect(await response).toMatchObject({ records: 2 });
  });
});

describe("a body without an end is ended at the limit", () => {
  const responseLimit = 1_048_576;
  const forever = (head: string | Buffer, piece: Buffer) =>
    server((socket) => {
      socket.write(head);
      const more = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on("drain", more);
      more();
    });
  const records = Buffer.from(`${RECORD},`.repeat(500));
  const rows = Buffer.from("2026-01-05T00:00:00Z,2026-01-06T00:00:00Z,p,name,1\n".repeat(500));
  const bomb = gzipSync(Buffer.alloc(100_000_000, " "));
  const empty = Buffer.from("000000ffff".repeat(2000), "hex");
  test.each([
    ["records", "usage", "", records],
    ["rows", "exportCsv", "", rows],
    ["spaces", "usage", "", Buffer.alloc(65_536, " ")],
    ["a gzip bomb", "usage", "content-encoding: gzip\r\n", bomb],
    ["a gzip bomb", "exportCsv", "content-encoding: gzip\r\n", bomb],
  ] as const)("with %s: %s", async (what, request, header, piece) => {
    const begin = what === "records" ? '{"stride":{"days":1},"usage":[' : "";
    const { clock, ...calls } = setup(
      await forever(`HTTP/1.1 200 OK\r\nconnection: close\r\n${header}\r\n${begin}`, piece),
      { responseLimit },
    );
    const error = await rejection(calls[request]());
    expect(error).toMatchObject({
      code: "response_too_large",
      retryable: false,
      next: expect.stringContaining("USAGE_RESPONSE_LIMIT"),
    });
    expect((error as Error).message).toContain("larger than 1,048,576 bytes");
    expect(clock.waiting).toBe(0);
  });

  test("and a refusal keeps its status", async () => {
    const url = await forever("HTTP/1.1 500 X\r\nconnection: close\r\n\r\n", Buffer.alloc(65_536, "x"));
    expect(await rejection(setup(url).usage())).toMatchObject({ code: "server_error", status: 500 });
    const zipped = await forever(
      "HTTP/1.1 500 X\r\nconnection: close\r\ncontent-encoding: gzip\r\n\r\n",
      Buffer.concat([gzipSync("why"), empty]),
    );
    expect(await rejection(setup(zipped).usage())).toMatchObject({ code: "server_error", status: 500 });
  });
});

test("an abort ends a body that is within its time, and leaves no listener behind", async () => {
  const url = await server((socket) => socket.write(`${CHUNKED}\r\n${chunk("{")}`));
  const abort = new AbortController();
  const [add, remove] = [abort.signal.addEventListener, abort.signal.removeEventListener];
  const listeners = new Set<unknown>();
  abort.signal.addEventListener = (...given: Parameters<typeof add>) => {
    listeners.add(given[1]);
    add.apply(abort.signal, given);
  };
  abort.signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    listeners.delete(given[1]);
    remove.apply(abort.signal, given);
  };
  const { clock, afterHead, usage } = setup(url, { timeouts: { graceMs: 1000 } });
  const late = rejection(usage(undefined, abort.signal));
  expect(listeners.size).toBe(1);
  expect(
    await until(
      late,
      afterHead(() => clock.pass(100)),
    ),
  ).toMatchObject({ code: "timeout" });
  expect(listeners.size).toBe(0);
  const requested = rejection(usage(undefined, abort.signal));
  await turn();
  const reason = new Error("enough");
  abort.abort(reason);
  expect(await requested).toBe(reason);
});

import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { CONNECTION_LIMITS, type ConnectionLimits } from "../../../src/web/connections.ts";
import { newApp } from "../../../src/web/server.ts";

/** A server with these limits. `stream` sends one piece, and a last one when the test says so; `endless` never ends. */
async function serve(limits: Partial<ConnectionLimits>, trustedProxies: string[] = []) {
  const app = newApp({ trustedProxies, limits: { ...CONNECTION_LIMITS, checkedEveryMs: 20, ...limits } });
  const last = Promise.withResolvers<string>();
  const left = Promise.withResolvers<void>();
  app.addHook("onRequest", async (request, reply) => {
    if (request.url === "/refused") await reply.code(401).send("no");
  });
  app.post("/form", async () => "read");
  app.post("/refused", async () => "read");
  app.get("/page", async () => "page");
  app.get("/stream", async () =>
    Readable.from(
      (async function* () {
        yield "first ";
        yield await last.promise;
      })(),
    ),
  );
  app.get("/endless", async (_, reply) => {
    reply.raw.once("close", left.resolve);
    return Readable.from(
      (async function* () {
        for (;;) yield Buffer.alloc(65_536);
      })(),
    );
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const open = async (text: string) => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    if (text !== "") socket.write(text);
    return socket;
  };
  return { url: `http://127.0.0.1:${port}`, open, end: last.resolve, left: left.promise };
}

const closed = (socket: Socket) => {
  socket.resume();
  return socket.closed ? undefined : new Promise<unknown>((resolve) => socket.once("close", resolve));
};

const POST = "host: x\r\ncontent-type: application/json\r\n";

test("a request that does not end is closed in its time; a response may last longer", async () => {
  const { url, open, end } = await serve({ headMs: 100, requestMs: 200 });
  const stream = await fetch(`${url}/stream`);
  const unfinished = [
    "",
    "GET /page HTTP/1.1\r\nhost: x\r\n",
    `POST /form HTTP/1.1\r\n${POST}content-length: 100\r\n\r\n{"a":`,
    `POST /form HTTP/1.1\r\n${POST}transfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\n`,
    `POST /refused HTTP/1.1\r\n${POST}content-length: 100\r\n\r\n{"a":`,
    `GET /page HTTP/1.1\r\nhost: x\r\n\r\nPOST /form HTTP/1.1\r\n${POST}content-length: 9\r\n\r\n`,
  ];
  await Promise.all(unfinished.map(async (text) => closed(await open(text))));
  end("last");
  expect(await stream.text()).toBe("first last");
  expect((await fetch(`${url}/form`, { method: "POST", body: "{}" })).status).toBe(200);
});

test("a body that comes a byte at a time is closed too", async () => {
  const { open } = await serve({ headMs: 100, requestMs: 200 });
  const socket = await open(`POST /form HTTP/1.1\r\n${POST}content-length: 60000\r\n\r\n`);
  const timer = setInterval(() => socket.write("["), 10);
  onTestFinished(() => clearInterval(timer));
  await closed(socket);
});

test("a response that nobody reads is given up", async () => {
  const { open, left } = await serve({ silentMs: 200 });
  const socket = await open("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n");
  socket.pause();
  await left;
});

test.each([
  ["an address gets so many connections", { connectionsOfAddress: 3 }, []],
  [
    "a trusted proxy connects for many, up to the limit of all",
    { connectionsOfAddress: 1, connections: 3 },
    ["127.0.0.1"],
  ],
])("%s, and a place is free again when one ends", async (_, limits, proxies) => {
  const { url, open } = await serve(limits, proxies);
  const [first] = await Promise.all(["", "", ""].map(open));
  await closed(await open(""));
  first?.destroy();
  const status = () =>
    fetch(`${url}/page`).then(
      (response) => response.status,
      () => "refused",
    );
  await expect.poll(status).toBe(200);
});

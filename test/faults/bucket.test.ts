import { readFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTls } from "node:https";
import { buffer } from "node:stream/consumers";
import tls from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { openBucket } from "../../src/features/export/bucket.ts";
import { createAuthority } from "../support/certificates.ts";
import { setProxies, startForwardProxy } from "../support/forward-proxy.ts";
import { listenInTest } from "../support/listen.ts";
import { bench, envOf, run } from "../support/program.ts";

async function startDrippingServer() {
  let open = 0;
  const server = createServer((request, response) => {
    open++;
    response.writeHead(200, { "content-type": "application/xml" });
    response.write('<?xml version="1.0"?>');
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => {
      open--;
      clearInterval(timer);
    });
    request.resume();
  });
  return { url: `http://127.0.0.1:${await listenInTest(server)}`, open: () => open };
}

function bucketAt(endpoint: string, { withinMs }: { withinMs?: number } = {}) {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("AWS_ENDPOINT_URL_S3", endpoint);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "key");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  const { signal } = new AbortController();
  return openBucket(
    { address: "s3://b", bucket: "b", prefix: "" },
    { signal, ...(withinMs && { withinMs }) },
  );
}

test("a bucket whose answers drip holds nobody: each request ends at its limit", async () => {
  const server = await startDrippingServer();
  const bucket = bucketAt(server.url, { withinMs: 300 });
  for (const call of [() => bucket.list("folder"), () => bucket.read("file")]) {
    await expect(call()).rejects.toMatchObject({
      code: "files_place_away",
      message: "s3://b does not respond (within 0.3 s). The files of the last manifest are complete.",
    });
    await vi.waitFor(() => expect(server.open()).toBe(0), { timeout: 60_000 });
  }
});

test.each(["http", "https"])("a bucket is read and written through a proxy (%s)", async (scheme) => {
  const objects = new Map<string, Buffer>();
  const keep: RequestListener = async (request, response) => {
    const body = await buffer(request);
    const key = request.url?.split("?")[0] ?? "";
    if (request.method === "PUT") objects.set(key, body);
    const found = objects.get(key);
    response.writeHead(found === undefined ? 404 : 200, { "x-many": ["1", "2"] });
    response.end(request.method === "PUT" ? "" : (found ?? "<Error><Code>NoSuchKey</Code></Error>"));
  };
  const authority = createAuthority();
  const [cert, key] = Object.values(authority.issue("bucket.test")).map((file) => readFileSync(file));
  const port = await listenInTest(scheme === "http" ? createServer(keep) : createTls({ cert, key }, keep));
  const before = tls.getCACertificates("default");
  tls.setDefaultCACertificates([readFileSync(authority.ca, "utf8")]);
  onTestFinished(() => tls.setDefaultCACertificates(before));
  const bucket = bucketAt(`${scheme}://bucket.test:9000`);
  const proxy = await startForwardProxy({ hosts: { "bucket.test:9000": port }, login: "ada:pass@1" });
  setProxies({ [`${scheme}_proxy`]: proxy.url.replace("//", "//ada:pass%401@") });
  const file = await bucket.create("day one/é.parquet");
  await file.write(Buffer.alloc(3_000_000, 7));
  await file.commit();
  expect((await bucket.read("day one/é.parquet"))?.length).toBe(3_000_000);
  expect(await bucket.read("none")).toBeUndefined();
  expect(proxy.requests.length).toBeGreaterThan(0);
  for (const line of proxy.requests)
    expect(line).toMatch(
      scheme === "http" ? /^(PUT|GET) http:\/\/bucket\.test:9000\/b\// : /^CONNECT bucket\.test:9000$/,
    );
  expect(proxy.bytes().includes("Credential=key/")).toBe(scheme === "http");
});

test("a proxy that refuses a bucket, or is not there, is named without its password", async () => {
  const bucket = bucketAt("https://bucket.test");
  const proxy = await startForwardProxy({ hosts: {}, login: "ada:other" });
  for (const [url, said] of [
    [proxy.url, "it refuses with 407"],
    ["http://127.0.0.1:9", "connect ECONNREFUSED 127.0.0.1:9"],
  ] as const) {
    setProxies({ HTTPS_PROXY: url.replace("//", "//ada:sesame@") });
    const shown = `${url} (HTTPS_PROXY)`;
    await expect(bucketAt("https://bucket.test").list("folder")).rejects.toMatchObject({
      code: "files_place_away",
      message: `s3://b does not respond (through the proxy ${shown}: ${said}). The files of the last manifest are complete.`,
    });
  }
  expect(proxy.requests.length).toBeGreaterThan(1);
  proxy.manner = "silent";
  setProxies({ HTTPS_PROXY: proxy.url.replace("//", "//ada:other@") });
  await expect(bucketAt("https://bucket.test", { withinMs: 300 }).read("x")).rejects.toMatchObject({
    message: "s3://b does not respond (within 0.3 s). The files of the last manifest are complete.",
  });
  setProxies({ HTTPS_PROXY: "socks5://ada:sesame@127.0.0.1:9" });
  const error = await bucket.read("x").catch((thrown) => thrown);
  expect(error.message).toContain("HTTPS_PROXY is not of the form");
  expect(`${error.message} ${error.next}`).not.toContain("sesame");
});

test("files write ends with 6 while the bucket is out of reach, and names the bucket once", async () => {
  const made = await bench({ workspaces: [0], days: 1 });
  const env = { ...envOf(made), AWS_ACCESS_KEY_ID: "key", AWS_SECRET_ACCESS_KEY: "secret" };
  await run(["sync", "--inline"], env);
  const down = createServer((request, response) => {
    request.resume();
    response.writeHead(503).end();
  });
  for (const endpoint of ["http://127.0.0.1:1", `http://127.0.0.1:${await listenInTest(down)}`]) {
    const written = await run(["files", "write", "--to", "s3://b/usage"], {
      ...env,
      AWS_ENDPOINT_URL_S3: endpoint,
    });
    expect(written).toMatchObject({ code: 6, stdout: "" });
    expect(written.stderr).toMatch(
      /^s3:\/\/b\/usage does not respond \(.*\)\. The files of the last manifest are complete\.\n.*\[files_place_away\]\n$/,
    );
  }
});

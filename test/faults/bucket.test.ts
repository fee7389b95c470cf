import { createServer } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { openBucket } from "../../src/features/export/bucket.ts";
import { listenInTest } from "../support/listen.ts";

/** A server of buckets that begins each response and sends a byte now and then, for ever. */
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

test("a bucket whose answers drip holds nobody: each request ends at its limit", async () => {
  const server = await startDrippingServer();
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("AWS_ENDPOINT_URL_S3", server.url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "key");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  const { signal } = new AbortController();
  const bucket = openBucket({ address: "s3://b", bucket: "b", prefix: "" }, { signal, withinMs: 300 });
  for (const call of [() => bucket.list("folder"), () => bucket.read("file")]) {
    await expect(call()).rejects.toMatchObject({
      code: "files_place_away",
      message: "s3://b does not respond (within 0.3 s). The last manifest there stays true.",
    });
    await vi.waitFor(() => expect(server.open()).toBe(0), { timeout: 60_000 });
  }
});

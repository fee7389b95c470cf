import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import tls from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import type { PlatformError } from "../../../../../src/core/base/errors.ts";
import { PlatformHttp, type PlatformHttpOptions } from "../../../../../src/core/platform/http/http.ts";
import { createAuthority } from "../../../../support/certificates.ts";
import { setProxies, startForwardProxy } from "../../../../support/forward-proxy.ts";
import { listenInTest } from "../../../../support/listen.ts";
import { KEY, rawServer, rejection, status } from "./raw-server.ts";

/** The platform behind a proxy of a company: tunnels for https, plain requests for http, and proxies that refuse. */

const LOGIN = "ada:sesame@1";
const IN_URL = "ada:sesame%401";

/** A platform at https://platform.test with a certificate that this process trusts. */
async function startTlsPlatform() {
  const authority = createAuthority();
  const [cert, key] = Object.values(authority.issue("platform.test")).map((file) => readFileSync(file));
  const seen: string[] = [];
  const server = createServer({ cert, key }, (request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers["x-api-key"]} ${request.headers.host}`);
    request.resume();
    response.end('{"ok":true}');
  });
  const port = await listenInTest(server);
  const before = tls.getCACertificates("default");
  tls.setDefaultCACertificates([readFileSync(authority.ca, "utf8")]);
  onTestFinished(() => tls.setDefaultCACertificates(before));
  return { port, seen, authority };
}

async function startPlainPlatform() {
  const server = await rawServer(() => status("200 OK", "[]"));
  return { port: Number(new URL(server.url).port), server };
}

function clientOf(baseUrl: string, options: Partial<PlatformHttpOptions> = {}) {
  const http = new PlatformHttp({ baseUrl, apiKey: KEY, ...options });
  onTestFinished(() => http.close());
  return http;
}

async function textOf(http: PlatformHttp): Promise<string> {
  const { body } = await http.get({ path: "/api/v1/info" });
  const chunks: Buffer[] = [];
  for await (const chunk of body.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test.each(["http", "https"])(
  "an https platform is reached by CONNECT through an %s proxy, which never sees the key",
  async (scheme) => {
    const { port, seen, authority } = await startTlsPlatform();
    const [cert, key] = Object.values(authority.issue("localhost")).map((file) => readFileSync(file));
    const secure =
      scheme === "https" && cert !== undefined && key !== undefined ? { tls: { cert, key } } : {};
    const hosts = { "platform.test:443": port, "platform.test:8443": port };
    const proxy = await startForwardProxy({ hosts, login: LOGIN, ...secure });
    setProxies({ HTTPS_PROXY: proxy.url.replace("//", `//${IN_URL}@`), HTTP_PROXY: "http://127.0.0.1:9" });
    const http = clientOf("https://platform.test/prefix");
    expect(await Promise.all([textOf(http), textOf(http)])).toEqual(['{"ok":true}', '{"ok":true}']);
    await clientOf("https://platform.test:8443").send({
      method: "POST",
      path: "/runs",
      body: { a: 1 },
      effect: "",
    });
    expect(seen.sort()).toEqual([
      `GET /prefix/api/v1/info ${KEY} platform.test`,
      `GET /prefix/api/v1/info ${KEY} platform.test`,
      `POST /runs ${KEY} platform.test:8443`,
    ]);
    expect(new Set(proxy.requests)).toEqual(
      new Set(["CONNECT platform.test:443", "CONNECT platform.test:8443"]),
    );
    expect(proxy.bytes().length).toBeGreaterThan(1000);
    expect(proxy.bytes()).not.toContain(KEY);
    expect(proxy.bytes()).not.toContain("/prefix");
  },
);

test("a plain http platform gets requests that the proxy passes on, and NO_PROXY goes past it", async () => {
  const { port, server } = await startPlainPlatform();
  const proxy = await startForwardProxy({ hosts: { "platform.test:80": port }, login: LOGIN });
  setProxies({ http_proxy: proxy.url.replace("//", `//${IN_URL}@`), NO_PROXY: "10.0.0.0/8" });
  const http = clientOf("http://platform.test");
  expect(await textOf(http)).toBe("[]");
  expect(proxy.requests).toEqual(["GET http://platform.test/api/v1/info"]);
  expect(server.requests[0]).toMatch(/^GET \/api\/v1\/info HTTP/);
  expect(server.requests[0]).not.toMatch(/proxy-authorization/i);
  expect(await textOf(clientOf(server.url))).toBe("[]");
  expect(proxy.requests).toHaveLength(1);
});

test.each(["http", "https"])(
  "no more connections are open through a proxy than without one (%s)",
  async (scheme) => {
    const { port } = scheme === "https" ? await startTlsPlatform() : await startPlainPlatform();
    const proxy = await startForwardProxy({ hosts: { "platform.test:80": port, "platform.test:443": port } });
    setProxies({ HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url });
    const http = clientOf(`${scheme}://platform.test`, { connections: 2 });
    await Promise.all(Array.from({ length: 6 }, () => textOf(http)));
    expect(proxy.connections()).toBe(2);
  },
);

test.each([
  ["https", 407, "network", "the proxy refuses with 407"],
  ["https", 403, "network", "the proxy refuses with 403"],
  ["http", 407, "network", "the proxy refuses with 407"],
  ["http", 403, "forbidden", "responded with 403: refused by the proxy ada:[redacted]"],
] as const)(
  "a proxy that refuses %s with %d is named without its password",
  async (scheme, refusal, code, said) => {
    const proxy = await startForwardProxy({ hosts: {}, login: refusal === 407 ? "other:login" : LOGIN });
    proxy.manner = refusal;
    const variable = `${scheme.toUpperCase()}_PROXY`;
    setProxies({ [variable]: proxy.url.replace("//", `//${IN_URL}@`) });
    const http = clientOf(`${scheme}://platform.test`);
    const error = (await rejection(
      http.send({ method: "POST", path: "/runs", body: {}, effect: "It may run." }),
    )) as PlatformError;
    expect(error).toMatchObject({ code });
    expect(error.message).toContain(
      `POST ${scheme}://platform.test/runs through the proxy ${proxy.url} (${variable})`,
    );
    expect(error.message).toContain(said);
    if (code === "network") expect(error.next).toContain(`Check ${variable}`);
    // The request did not reach the platform, so nothing can have happened there.
    expect(error.next).not.toContain("It may run.");
    expect(`${error.message} ${error.next} ${error.stack} ${error.cause}`).not.toMatch(/sesame|c2VzYW1l/);
  },
);

test("a proxy that is not there is named, and the host that it would reach is not blamed", async () => {
  setProxies({ HTTPS_PROXY: `http://${IN_URL}@127.0.0.1:9` });
  const error = (await rejection(textOf(clientOf("https://platform.test")))) as PlatformError;
  expect(error).toMatchObject({ code: "network", retryable: true });
  expect(error.message).toContain("through the proxy http://127.0.0.1:9 (HTTPS_PROXY) got no response");
  expect(error.next).toMatch(/^Check HTTPS_PROXY.*NO_PROXY/);
  expect(`${error.message} ${error.next} ${error.stack}`).not.toContain("sesame");
});

test("a tunnel that carries nothing ends within the limit of a connection", async () => {
  const proxy = await startForwardProxy({ hosts: {} });
  proxy.manner = "stalls";
  setProxies({ HTTPS_PROXY: proxy.url });
  const timeouts = { connectMs: 200, headersMs: 4_000 };
  const error = await rejection(textOf(clientOf("https://platform.test", { timeouts })));
  expect(error).toMatchObject({
    code: "timeout",
    cause: { code: "UND_ERR_CONNECT_TIMEOUT" },
    message: expect.stringContaining(`the proxy ${proxy.url}`),
  });
});

test.each(["https", "http"])(
  "a proxy that never responds ends at the limits of the request (%s)",
  async (scheme) => {
    const proxy = await startForwardProxy({ hosts: {} });
    proxy.manner = "silent";
    setProxies({ HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url });
    const timeouts = { connectMs: 200, headersMs: 60_000 };
    const http = clientOf(`${scheme}://platform.test`, {
      connections: 1,
      timeouts: scheme === "https" ? timeouts : { ...timeouts, headersMs: 600 },
    });
    const error = (await rejection(textOf(http))) as PlatformError;
    expect(error).toMatchObject({ code: "timeout", retryable: true });
    expect(error.message).toContain(`through the proxy ${proxy.url}`);
    expect(error.next).toMatch(/Check HTTPS?_PROXY/);
    proxy.manner = 403;
    expect(await rejection(textOf(http))).toMatchObject({ message: expect.stringContaining("403") });
  },
);

test("a certificate of an authority that is not trusted ends the tunnel with the way to trust it", async () => {
  const { port } = await startTlsPlatform();
  tls.setDefaultCACertificates([]);
  const proxy = await startForwardProxy({ hosts: { "platform.test:443": port } });
  setProxies({ HTTPS_PROXY: proxy.url });
  const error = (await rejection(textOf(clientOf("https://platform.test")))) as PlatformError;
  expect(error).toMatchObject({ code: "network", next: expect.stringContaining("NODE_EXTRA_CA_CERTS") });
});

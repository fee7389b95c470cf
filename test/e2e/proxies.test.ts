import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createServer } from "node:tls";
import { expect, test } from "vitest";
import { createAuthority } from "../support/certificates.ts";
import { startForwardProxy } from "../support/forward-proxy.ts";
import { listenInTest } from "../support/listen.ts";
import { bench, document, envOf, KEY, run } from "../support/program.ts";

/** A network of a company: hosts that only its proxy can reach, with certificates of its own authority. */
async function startNetwork(platformUrl: string) {
  const authority = createAuthority();
  const [cert, key] = Object.values(authority.issue("platform.test")).map((file) => readFileSync(file));
  const server = createServer({ cert, key }, (secure) => {
    const plain = connect(Number(new URL(platformUrl).port), "127.0.0.1");
    for (const [from, to] of [
      [secure, plain],
      [plain, secure],
    ] as const) {
      from.on("error", () => to.destroy()).pipe(to);
    }
  });
  const hosts = { "platform.test:443": await listenInTest(server) };
  return { ca: authority.ca, proxy: await startForwardProxy({ hosts, login: "ada:sesame-1" }) };
}

test("usage is loaded through a proxy with an authority of the company, and doctor names what goes through it", async () => {
  const made = await bench({ workspaces: [0], days: 3 });
  const { ca, proxy } = await startNetwork(made.standin.url);
  const variables = {
    HTTPS_PROXY: proxy.url.replace("//", "//ada:sesame-1@"),
    NO_PROXY: "10.0.0.0/8,.in.test",
  };
  const env = {
    ...envOf(made),
    USAGE_BASE_URL: "https://platform.test",
    USAGE_DEPLOYMENT_URL: "https://agents.in.test:8443/x",
    USAGE_ALERT_WEBHOOK_URL: "https://bob:sesame-2@hooks.test/sesame-3",
    USAGE_WEB_URL: "https://usage.test",
    USAGE_WEB_READ_TOKEN: "https://login.test/realm",
    USAGE_EXPORT_DIR: "s3://b/prefix",
    AWS_ENDPOINT_URL_S3: "https://bucket.test",
    AWS_ACCESS_KEY_ID: "key",
    AWS_SECRET_ACCESS_KEY: "sesame-4",
    ...variables,
  };
  const untrusted = await run(["doctor"], { ...env, USAGE_EXPORT_DIR: "" });
  expect([untrusted.code, untrusted.stdout.replace(/\s+/g, " ")]).toEqual([
    6,
    expect.stringContaining("For a private authority, set NODE_EXTRA_CA_CERTS to its file."),
  ]);
  const trusted = { ...env, NODE_EXTRA_CA_CERTS: ca };
  expect(await run(["sync", "--inline"], trusted)).toMatchObject({ code: 0, stderr: "" });
  expect(new Set(proxy.requests)).toEqual(new Set(["CONNECT platform.test:443"]));
  expect(proxy.bytes()).not.toContain(KEY);
  const checks = document(await run(["doctor", "--json"], trusted)) as unknown[];
  const through = `through the proxy ${proxy.url} (HTTPS_PROXY)`;
  const passed = (of: object) => expect.objectContaining({ status: "pass", ...of });
  expect(checks).toContainEqual(passed({ check: "key" }));
  for (const finding of [
    `https://platform.test: ${through}`,
    `https://hooks.test: ${through}`,
    `https://bucket.test: ${through}`,
    `https://login.test: ${through}`,
    "https://agents.in.test:8443: without a proxy",
  ])
    expect(checks).toContainEqual(passed({ check: "proxy", finding }));
  // The proxy does not know this host.
  expect(checks).toContainEqual(
    expect.objectContaining({
      check: "files",
      code: "files_place_away",
      finding: expect.stringContaining(`through the proxy ${proxy.url} (HTTPS_PROXY): it refuses with 502`),
    }),
  );
  expect(JSON.stringify([untrusted, checks])).not.toMatch(/sesame/);
});

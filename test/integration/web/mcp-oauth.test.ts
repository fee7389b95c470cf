import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import cookies from "@fastify/cookie";
import { discoverOAuthProtectedResourceMetadata } from "@modelcontextprotocol/client";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/core/base/clock.ts";
import { overHttp, rowsOf } from "../../support/mcp.ts";
import { setupPages } from "../../support/pages.ts";
import { setupSource } from "../../support/reporting.ts";
import { atEnd } from "../../support/share.ts";

/** Tokens of an issuer beside those of the settings. */

const START = Date.parse("2026-03-02T00:00:00Z");
const TOKEN = "viewers-token-4712";
const RESOURCE = "https://usage.example.com/mcp";

let pair: Awaited<ReturnType<typeof generateKeyPair>>;
let other: typeof pair;
beforeAll(async () => {
  pair = await generateKeyPair("ES256", { extractable: true });
  other = await generateKeyPair("ES256", { extractable: true });
});

let now: number;
let issuer: {
  url: string;
  path: string;
  requests: string[];
  isDown: boolean;
  calls: string | undefined;
  keysAt: string | undefined;
};
let site: Awaited<ReturnType<typeof setupPages>>;

beforeEach(async () => {
  now = START;
  const server = createServer(async ({ url = "" }, response) => {
    issuer.requests.push(url);
    if (issuer.isDown) return response.writeHead(500).end();
    const documents: Record<string, unknown> = {
      [issuer.path]: { issuer: issuer.calls ?? issuer.url, jwks_uri: issuer.keysAt ?? `${issuer.url}/keys` },
      "/realm/keys": { keys: [{ ...(await exportJWK(pair.publicKey)), kid: "k", alg: "ES256", use: "sig" }] },
    };
    response.writeHead(url in documents ? 200 : 404, { "content-type": "application/json" });
    return response.end(JSON.stringify(documents[url] ?? {}));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  atEnd(() => new Promise((done) => server.close(done)));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/realm`;
  issuer = {
    url,
    path: "/realm/.well-known/openid-configuration",
    requests: [],
    isDown: false,
    calls: undefined,
    keysAt: undefined,
  };
  site = await serve(`${TOKEN}, ${url}`);
});

async function serve(readToken: string, operator = "operators-token-4711") {
  const { store, url: databaseUrl } = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const environment = {
    USAGE_WEB_TOKEN: operator,
    USAGE_WEB_READ_TOKEN: readToken,
    USAGE_WEB_URL: "https://usage.example.com",
  };
  const services = { clock: { ...systemClock, now: () => now } };
  return setupPages({ databaseUrl, store, standin }, { environment, services });
}

const claims = (): JWTPayload => ({
  iss: issuer.url,
  aud: RESOURCE,
  sub: "ada",
  exp: START / 1000 + 600,
});

const signed = (payload: JWTPayload, key: CryptoKey | Uint8Array = pair.privateKey, header = {}) =>
  new SignJWT(payload).setProtectedHeader({ alg: "ES256", kid: "k", ...header }).sign(key);

async function send(token?: string) {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const response = await fetch(`${site.url}/mcp`, { method: "POST", headers, body });
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate"),
    body: (await response.json()) as { error?: string },
  };
}

test.each(["/realm/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/realm"])(
  "a token of an issuer that describes itself at %s reads as a viewer, beside the tokens of the settings",
  async (path) => {
    issuer.path = path;
    for (const [token, role] of [
      [await signed(claims()), "usage_reader_masked"],
      [await signed({ ...claims(), aud: ["x", RESOURCE] }), "usage_reader_masked"],
      [TOKEN, "usage_reader_masked"],
      ["operators-token-4711", "usage_reader"],
    ] as const) {
      const client = await overHttp(site.url, token);
      expect(await rowsOf(client, "SELECT current_user")).toEqual([{ current_user: role }]);
    }
    // The documents are read once for all tokens.
    expect(issuer.requests.filter((one) => one === "/realm/keys")).toHaveLength(1);
  },
);

test("any other token is refused as invalid", async () => {
  const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(pair.publicKey)));
  const { exp: _, ...endless } = claims();
  const { aud: __, ...forNothing } = claims();
  const tokens = {
    expired: signed({ ...claims(), exp: START / 1000 - 61 }),
    "not valid yet": signed({ ...claims(), nbf: START / 1000 + 61 }),
    endless: signed(endless),
    "for another resource": signed({ ...claims(), aud: "https://usage.example.com" }),
    "for nothing": signed(forNothing),
    "of another issuer": signed({ ...claims(), iss: "https://evil.example" }),
    "of another key": signed(claims(), other.privateKey),
    "signed with the public key": signed(claims(), secret, { alg: "HS256" }),
    unsigned: new UnsecuredJWT(claims()).encode(),
    "the issuer itself": issuer.url,
  };
  for (const [name, made] of Object.entries(tokens)) {
    // Ten wrong ones in a minute are too many.
    now = START;
    site = await serve(`${TOKEN},${issuer.url}`);
    const { status, challenge, body } = await send(await made);
    expect([name, status, body.error]).toEqual([name, 401, "unauthorized"]);
    expect(challenge).toContain('error="invalid_token"');
  }
}, 60_000);

test("a client finds the issuer from the refusal of its first request", async () => {
  const { status, challenge } = await send();
  expect(status).toBe(401);
  const [, url] = /resource_metadata="([^"]+)"/.exec(challenge ?? "") ?? [];
  expect(url).toBe("https://usage.example.com/.well-known/oauth-protected-resource/mcp");
  const here = async (address: string | URL, init?: RequestInit) =>
    fetch(String(address).replace("https://usage.example.com", site.url), init);
  const found = await discoverOAuthProtectedResourceMetadata(
    RESOURCE,
    { resourceMetadataUrl: new URL(url ?? "") },
    here,
  );
  expect(found).toMatchObject({ resource: RESOURCE, authorization_servers: [issuer.url] });
  for (const [path, method, wanted] of [
    ["oauth-protected-resource", "GET", 200],
    ["oauth-protected-resource/mcp", "POST", 405],
    ["oauth-protected-resource/other", "GET", 404],
    ["oauth-authorization-server", "GET", 404],
    ["openid-configuration", "GET", 404],
  ] as const) {
    const response = await fetch(`${site.url}/.well-known/${path}`, { method });
    expect([path, response.status]).toEqual([path, wanted]);
    expect(response.headers.get("content-type")).toContain("application/json");
    await response.json();
  }
});

test("without an issuer nothing is announced", async () => {
  site = await serve(TOKEN);
  expect((await send("a.b.c")).challenge).not.toContain("resource_metadata");
  const response = await fetch(`${site.url}/.well-known/oauth-protected-resource/mcp`);
  expect([response.status, await response.json()]).toMatchObject([404, { error: "not_found" }]);
});

test("an issuer that does not respond, calls itself otherwise or has keys elsewhere is named, and is requested again ten seconds later", async () => {
  const token = await signed(claims());
  for (const fault of ["isDown", "calls", "keysAt"] as const) {
    Object.assign(issuer, { [fault]: "https://evil.example" });
    site = await serve(issuer.url);
    for (let i = 0; i < 12; i++)
      expect(await send(token)).toMatchObject({ status: 503, body: { error: "issuer_unreachable" } });
    expect((await send("operators-token-4711")).status).toBe(200);
    const { length } = issuer.requests;
    Object.assign(issuer, { isDown: false, calls: undefined, keysAt: undefined });
    now += 9_999;
    expect((await send(token)).status).toBe(503);
    expect(issuer.requests).toHaveLength(length);
    now += 1;
    expect((await send(token)).status).toBe(200);
    issuer.requests.length = 0;
  }
});

test("an issuer alone lets nobody into the pages, with its address or with a cookie that needs no secret", async () => {
  site = await serve(issuer.url, "");
  const login = await site.post("/login", { token: issuer.url });
  expect([login.status, login.headers["set-cookie"]]).toEqual([401, undefined]);
  const key = createHmac("sha256", "[]").update("pages").digest("base64");
  const forged = cookies.sign(`operator.${now + 60_000}.x`, key);
  const cookie = `usage_etl_session=${encodeURIComponent(forged)}`;
  expect((await site.get("/", { cookie })).status).toBe(303);
});

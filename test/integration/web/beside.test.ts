import { expect, onTestFinished, test } from "vitest";
import { addPages } from "../../../src/app/service/web.ts";
import { systemClock } from "../../../src/core/base/clock.ts";
import { readConfig } from "../../../src/core/base/config.ts";
import { createLogger } from "../../../src/core/base/log.ts";
import { processState } from "../../../src/web/health.ts";
import { createMetrics } from "../../../src/web/metrics.ts";
import { startHttpServer } from "../../../src/web/server.ts";
import { now } from "../../support/clock.ts";
import { setupMigrated } from "../../support/store.ts";

/** What is served beside the pages, whoever may look at them. */

const WEB = "operators-token-4711";
const HEALTH = ["/livez", "/readyz", "/metrics"];

/** The HTTP side of a service as the settings say, with or without pages. */
async function setup() {
  const { store, url: databaseUrl } = await setupMigrated();
  return async (settings: Record<string, string>, hasPages = true) => {
    const config = readConfig({
      DATABASE_URL: databaseUrl,
      USAGE_BASE_URL: "http://127.0.0.1:9",
      USAGE_API_KEY: "platform-key",
      ...settings,
    });
    const services = {
      config,
      store,
      reader: store.db,
      clock: systemClock,
      log: createLogger("silent", "stderr"),
      lookAtQueues: undefined,
      enqueue: async () => {},
    };
    const { url, close } = await startHttpServer({
      host: "127.0.0.1",
      port: 0,
      reader: store.db,
      clock: systemClock,
      trustedProxies: config.webTrustedProxies,
      state: processState(now()),
      redisTime: async () => now(),
      metrics: createMetrics(
        store.db,
        async () => [],
        async () => [],
      ),
      ...(hasPages ? { addPages: (app) => addPages(app, services) } : {}),
      board: config.webToken === undefined ? undefined : { token: config.webToken.reveal(), queues: [] },
    });
    onTestFinished(close);
    return (path: string, headers: Record<string, string> = {}) =>
      fetch(`${url}${path}`, { headers, redirect: "manual" });
  };
}

const password = (text: string) => ({
  authorization: `Basic ${Buffer.from(`any:${text}`).toString("base64")}`,
});

test("health and metrics respond the same without pages, and with pages that are open, off or behind a token", async () => {
  const serve = await setup();
  const responsesOf = async (request: Awaited<ReturnType<typeof serve>>) => {
    const responses = HEALTH.map(async (path) => {
      // A foreign name, no cookie and no token: as a prober or a scraper asks.
      const { status, headers, ...response } = await request(path, { "x-forwarded-host": "etl.example" });
      const names = [...headers.keys()].filter((name) => name !== "content-length");
      return { path, status, type: headers.get("content-type"), names, response };
    });
    return Promise.all(responses);
  };
  const bare = await responsesOf(await serve({}, false));
  expect(bare.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const settings of [{}, { HTTP_HOST: "0.0.0.0" }, { HTTP_HOST: "0.0.0.0", USAGE_WEB_TOKEN: WEB }]) {
    const request = await serve(settings);
    expect([settings, await responsesOf(request)]).toEqual([settings, bare]);
    const page = await request("/", { accept: "text/html" });
    const expected = "USAGE_WEB_TOKEN" in settings ? 303 : "HTTP_HOST" in settings ? 403 : 200;
    expect([settings, page.status]).toEqual([settings, expected]);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  }
});

test("the board of queues is served with the operators' token alone, asks no other host, and its password opens no page", async () => {
  const serve = await setup();
  for (const request of [
    await serve({ USAGE_WEB_TOKEN: WEB }),
    await serve({ USAGE_WEB_TOKEN: WEB }, false),
  ]) {
    const statuses = [{}, password(""), password("guess"), password(WEB)].map(async (headers) => {
      return (await request("/queues/", headers)).status;
    });
    expect(await Promise.all(statuses)).toEqual([401, 401, 401, 200]);
    const { headers } = await request("/queues/");
    expect(headers.get("www-authenticate")).toContain("Basic");
    // Such as for the font of its pages.
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'(?!.*\/\/)/);
  }
  expect((await (await serve({}))("/queues/")).status).toBe(404);
  const page = await (await serve({ USAGE_WEB_TOKEN: WEB }))("/", { accept: "text/html", ...password(WEB) });
  expect([page.status, page.headers.get("location")]).toEqual([303, "/login?next=%2F"]);
});

test("guesses of the board's password have a bound, and behind a trusted proxy count against whoever made them", async () => {
  const serve = await setup();
  const request = await serve({ USAGE_WEB_TOKEN: WEB });
  const statusOf = async (headers: Record<string, string>) => (await request("/queues/", headers)).status;
  // A browser that asks without a password before it asks the person makes none.
  for (let i = 0; i < 12; i++) expect(await statusOf({})).toBe(401);
  for (let i = 0; i < 12; i++) expect(await statusOf(password(WEB))).toBe(200);
  for (let i = 0; i < 10; i++) expect(await statusOf(password(`guess ${i}`))).toBe(401);
  expect([await statusOf(password("guess")), await statusOf(password(WEB))]).toEqual([429, 200]);
  expect(await statusOf({ ...password("guess"), "x-forwarded-for": "203.0.113.7" })).toBe(429);

  const behind = await serve({ USAGE_WEB_TOKEN: WEB, USAGE_WEB_TRUSTED_PROXIES: "127.0.0.1" });
  const guess = async (forwarded: string) =>
    (await behind("/queues/", { ...password("guess"), "x-forwarded-for": forwarded })).status;
  for (let i = 0; i < 10; i++) expect(await guess(`198.51.100.${i}, 203.0.113.7`)).toBe(401);
  expect([await guess("198.51.100.99, 203.0.113.7"), await guess("203.0.113.8")]).toEqual([429, 401]);
});

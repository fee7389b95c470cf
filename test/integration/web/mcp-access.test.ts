import { expect, test } from "vitest";
import { overHttp, refusal, response } from "../../support/mcp.ts";
import { setupPages, TOKENS } from "../../support/pages.ts";
import { addSource, setupSource } from "../../support/reporting.ts";

test("of several sources one has to be named, and before the first sync there is none", async () => {
  const { store, url } = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const client = await overHttp((await setupPages({ databaseUrl: url, store, standin })).url);
  const bill = { month: "2026-03" };
  expect(await response(client, "bill", bill)).toMatchObject({ source: "default", totals: [] });
  await addSource(store, { slug: "other", workspaceIds: ["00000000-0000-4000-8000-000000000009"] });
  for (const [tool, args] of [
    ["bill", bill],
    ["why_changed", { from_day: "2026-03-01", to_day: "2026-04-01" }],
  ] as const)
    expect(await refusal(client, tool, args)).toContain("Name one source: default, other. [source_unnamed]");
  expect(await response(client, "bill", { ...bill, source: "other" })).toMatchObject({ source: "other" });
  expect(await refusal(client, "bill", { ...bill, source: "othr" })).toContain("Did you mean other?");
  await store.transaction(({ client: owner }) => owner.query("TRUNCATE usage.source CASCADE"));
  expect(await refusal(client, "bill", bill)).toContain("0 sources are stored");
  expect((await response(client, "status")).sources).toEqual([]);
});

test("without a token, with a wrong one, and beside another site nothing is answered", async () => {
  const { store, url } = await setupSource();
  const bench = { store, databaseUrl: url, standin: { url: "http://127.0.0.1:9", apiKey: "platform-key" } };
  const site = await setupPages(bench, { environment: TOKENS });
  await expect(overHttp(site.url)).rejects.toThrow(/Unauthorized|401/i);
  await expect(overHttp(site.url, "viewers-token-4713")).rejects.toThrow();
  const post = (url: string, headers: Record<string, string>) =>
    fetch(`${url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: "{}",
    });
  const refused = await post(site.url, {});
  expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([
    401,
    'Bearer realm="usage-etl"',
  ]);
  expect(await refused.json()).toMatchObject({
    error: "unauthorized",
    next: expect.stringContaining("Bearer TOKEN"),
  });
  const tries = await Promise.all(
    Array.from({ length: 12 }, () => post(site.url, { authorization: "Bearer wrong" })),
  );
  expect(tries.at(-1)?.status).toBe(429);

  const open = await setupPages(bench);
  const foreign = { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" };
  expect((await fetch(`${open.url}/mcp`, foreign)).status).toBe(415);
  expect((await post(open.url, { origin: "https://evil.test" })).status).toBe(403);
  expect((await post(open.url, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect((await overHttp(open.url)).getServerVersion()?.name).toBe("usage-etl");
  const off = await setupPages(bench, { environment: { HTTP_HOST: "0.0.0.0" } });
  expect((await post(off.url, {})).status).toBe(403);
});

import { expect, test } from "vitest";
import { answer, overHttp, refusal } from "../../support/mcp.ts";
import { setupPages, TOKENS } from "../../support/pages.ts";
import { addSource, setupSource } from "../../support/reporting.ts";
import { setup } from "../../support/source.ts";

test("of several sources one has to be named, and before the first sync there is none", async () => {
  const { store, url } = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const client = await overHttp((await setupPages({ databaseUrl: url, store, standin })).url);
  const bill = { month: "2026-03" };
  expect(await answer(client, "bill", bill)).toMatchObject({ source: "default", totals: [] });
  await addSource(store, { slug: "other", workspaceIds: ["00000000-0000-4000-8000-000000000009"] });
  for (const [tool, args] of [
    ["bill", bill],
    ["why_changed", { from: "2026-03-01", to: "2026-04-01" }],
  ] as const)
    expect(await refusal(client, tool, args)).toContain("Name one: default, other. [source_unnamed]");
  expect(await answer(client, "bill", { ...bill, source: "other" })).toMatchObject({ source: "other" });
  expect(await refusal(client, "bill", { ...bill, source: "othr" })).toContain("Did you mean other?");
  await store.transaction(({ client: owner }) => owner.query("TRUNCATE usage.source CASCADE"));
  expect(await refusal(client, "bill", bill)).toContain("There are 0 sources.");
  expect(await answer(client, "status")).toEqual([]);
});

test("a client of the protocol's year before is answered too", async () => {
  const pages = await setupPages(await setup({ days: 1 }));
  const params = {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  };
  const said = await fetch(`${pages.url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
  expect([said.status, await said.text()]).toEqual([
    200,
    expect.stringContaining('"protocolVersion":"2025-06-18"'),
  ]);
  const foreign = { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" };
  expect((await fetch(`${pages.url}/mcp`, foreign)).status).toBe(415);
});

test("without a token, with a wrong one, and beside another site nothing is answered", async () => {
  const bench = await setup({ days: 2 });
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
  expect((await post(open.url, { origin: "https://evil.test" })).status).toBe(403);
  expect((await post(open.url, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect((await overHttp(open.url)).getServerVersion()?.name).toBe("usage-etl");
  const off = await setupPages(bench, { environment: { HTTP_HOST: "0.0.0.0" } });
  expect((await post(off.url, {})).status).toBe(403);
});

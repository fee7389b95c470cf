import { expect, test } from "vitest";
import { dayOf } from "../../../src/domain/time/days.ts";
import { answer, ask, overHttp } from "../../support/mcp.ts";
import { setupPages, TOKENS } from "../../support/pages.ts";
import { addSource, setupSource } from "../../support/reporting.ts";
import { setup } from "../../support/source.ts";
import { setupUsage } from "../../support/usage-bench.ts";

test("usage by user adds up to the view, names what is missing, and shows no address to a read token", async () => {
  const bench = await setupUsage({ days: 4, gapAgo: 2 });
  const pages = await setupPages(bench, { environment: TOKENS });
  const range = { by: "user", from: dayOf(bench.dataStart), to: dayOf(bench.today), rows: 100 };
  const [operator, viewer] = [
    await overHttp(pages.url, TOKENS.USAGE_WEB_TOKEN),
    await overHttp(pages.url, TOKENS.USAGE_WEB_READ_TOKEN),
  ];
  for (const [client, view] of [
    [operator, "reporting.fct_usage_user_daily"],
    [viewer, "reporting_detail.fct_usage_user_daily_masked"],
  ] as const) {
    const used = await answer(client, "usage", range);
    const users = await bench.sql<{ id: string; name: string; amount: number }>(
      `SELECT user_id AS id, max(user_email) AS name, sum(traces)::float8 AS amount FROM ${view}
       WHERE usage_date >= $1::date AND usage_date < $2::date AND user_id <> '(none)' AND traces > 0
       GROUP BY 1 ORDER BY 3 DESC, user_id COLLATE "C"`,
      [range.from, range.to],
    );
    expect(used.total.amount).toBeNull();
    expect(used.is_complete).toBe(false);
    expect(used.missing.listed).toMatchObject([{ listed: [{ from: bench.gap }] }]);
    const lines = used.lines.filter(({ id }) => id !== null);
    expect(lines.map(({ id, name, amount_loaded }) => ({ id, name, amount: amount_loaded }))).toEqual(users);
  }
  expect(JSON.stringify(await answer(viewer, "usage", range))).not.toContain("@");
  // A day whose hours are not loaded by user.
  const oneDay = await answer(viewer, "usage", {
    ...range,
    from: dayOf(bench.dataStart),
    to: bench.gap,
    rows: 1,
  });
  expect(oneDay.is_complete).toBe(true);
  const misspelt = { ...range, group_by: "project" };
  expect(await ask(viewer, "usage", misspelt)).toContain("group_by");
});

test("of several sources one has to be named, and before the first sync there are no figures", async () => {
  const { store, url } = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const client = await overHttp((await setupPages({ databaseUrl: url, store, standin })).url);
  const range = { from: "2026-03-01", to: "2026-03-08" };
  expect(await answer(client, "usage", range)).toMatchObject({ source: "default", is_complete: false });
  const workspaceIds = ["00000000-0000-4000-8000-000000000009"];
  await addSource(store, { slug: "other", workspaceIds });
  for (const tool of ["usage", "coverage"])
    expect(await ask(client, tool, range)).toContain("Name one as source: default, other. [source_unnamed]");
  const other = await answer(client, "usage", { ...range, source: "other" });
  expect(other.missing.listed).toMatchObject([{ workspace_id: workspaceIds[0] }]);
  await store.transaction(({ client: owner }) => owner.query("TRUNCATE usage.source CASCADE"));
  expect(await ask(client, "bill", { month: "2026-03" })).toContain("[source_unloaded]");
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

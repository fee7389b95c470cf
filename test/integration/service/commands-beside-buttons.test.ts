import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { startStandin } from "../../../src/local/standin/server.ts";
import { openStore } from "../../../src/store/db/database.ts";
import { createTestDatabase, ensureTemplate } from "../../support/database.ts";
import { setupPages, startBackfill } from "../../support/pages.ts";
import { dayOf, run } from "../../support/program.ts";
import { startRedis } from "../../support/service.ts";
import { temporaryFile } from "../../support/temporary.ts";

/** The command that a page prints beside a button does what the button does: to its source, and to nothing else. */

/** What differs although the same was done: when, by whom, and what only looking changes. */
const INCIDENTAL = new Set(["actor", "via", "fetch_number", "message"]);

async function tablesOf(url: string): Promise<Record<string, string[]>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'usage' AND table_type = 'BASE TABLE' ORDER BY 1",
    );
    const tables: Record<string, string[]> = {};
    for (const { name } of rows) {
      const found = await client.query<Record<string, unknown>>(`SELECT * FROM usage.${name}`);
      const kept = (row: Record<string, unknown>) =>
        Object.entries(row).filter(([column, value]) => !(value instanceof Date) && !INCIDENTAL.has(column));
      tables[name] = found.rows.map((row) => JSON.stringify(kept(row))).sort();
    }
    return tables;
  } finally {
    await client.end();
  }
}

test("a command beside a button leaves the same tables as the button, of several sources too", async () => {
  const now = Date.now();
  const monthStart = new Date(now - 4 * DAY_MS).toISOString().slice(0, 7);
  const month = new Date(Date.parse(`${monthStart}-01`) - DAY_MS).toISOString().slice(0, 7);
  const dataStart = dayOf(Date.parse(`${monthStart}-01`) - 2 * DAY_MS);
  const standin = await startStandin({ dataStart, now: () => now });
  onTestFinished(() => standin.close());
  const redisUrl = await startRedis();
  const sources = ["one", "two"].map((slug, i) => ({
    ...{ slug, baseUrl: standin.url, apiKey: standin.apiKey, dataStart, rateLimit: 1000 },
    workspaceIds: [standin.organisation.workspaces[i]?.id],
  }));
  const settings = { USAGE_SOURCES_FILE: temporaryFile(JSON.stringify(sources)), USAGE_HOURLY_FOR: "PT1H" };
  const template = `two_sources_${randomBytes(4).toString("hex")}`;
  await ensureTemplate(template, async (DATABASE_URL) => {
    const env = { ...settings, DATABASE_URL };
    for (const args of [["migrate"], ["sync", "--inline"], ["reconcile"]]) {
      const { code, stdout, stderr } = await run(args, env);
      expect([args[0], code, code === 0 ? "" : stdout + stderr]).toEqual([args[0], 0, ""]);
    }
  });
  const copy = async () => {
    const database = await createTestDatabase({ template });
    onTestFinished(() => database.drop());
    return database.url;
  };
  const onPage = async (
    act: (pages: Awaited<ReturnType<typeof setupPages>>, databaseUrl: string) => Promise<void>,
  ) => {
    const databaseUrl = await copy();
    const store = openStore({ url: databaseUrl });
    onTestFinished(() => store.close());
    const environment = { ...settings, USAGE_BASE_URL: "", USAGE_API_KEY: "" };
    await act(await setupPages({ databaseUrl, standin, store }, { environment }), databaseUrl);
    return tablesOf(databaseUrl);
  };
  const byCommand = async (...commands: string[]) => {
    const DATABASE_URL = await copy();
    for (const command of commands) {
      const args = command.replace(/^usage-etl /, "").split(" ");
      const { code, stdout, stderr } = await run(args, { ...settings, DATABASE_URL, REDIS_URL: redisUrl });
      expect([command, code, code === 0 ? "" : stdout + stderr]).toEqual([command, 0, ""]);
    }
    return tablesOf(DATABASE_URL);
  };
  const commandIn = (text: string, begins: string) =>
    new RegExp(`<code>(${begins}[^<]*)</code>`).exec(text)?.[1]?.replaceAll("&#34;", '"') ?? "";

  let command = "";
  let costsCommand = "";
  const lines = "sku,unit_price,currency,valid_from\ntraces,0.5,USD,2020-01-01\n";
  const priceCommand = `prices import ${temporaryFile(lines, "prices.csv")}`;
  const closedByPage = await onPage(async (pages, DATABASE_URL) => {
    const path = `/months/${month}/close?source=two`;
    const { text } = await pages.get(path);
    command = commandIn(text, "usage-etl close");
    const [, digest = ""] = /name="digest" value="(\w+)"/.exec(text) ?? [];
    const fields = { source: "two", digest, costs: "none" };
    const sent = await pages.post(`/months/${month}/close`, fields, { from: path });
    expect(sent.status).toBe(303);
    // Its costs are closed once they have prices.
    expect(await run(priceCommand.split(" "), { ...settings, DATABASE_URL })).toMatchObject({ code: 0 });
    const page = `/months/${month}?source=two`;
    costsCommand = commandIn((await pages.get(page)).text, "usage-etl close");
    const costs = { source: "two", costs: "closed" };
    expect((await pages.post(`/months/${month}/close`, costs, { from: page })).status).toBe(303);
  });
  expect(command).toContain("--source two --without-costs");
  expect(costsCommand).toBe(`usage-etl close ${month} --source two`);
  expect(closedByPage.month_close).toHaveLength(1);
  expect(closedByPage.closed_charge?.length).toBeGreaterThan(0);
  expect(await byCommand(command, priceCommand, costsCommand)).toEqual(closedByPage);

  const startedByPage = await onPage(async (pages) => {
    const asked = `/backfills/new?source=two&from=${dataStart}&to=${monthStart}-01&reprocess=all&group_by=project`;
    command = commandIn((await pages.get(asked)).text, "usage-etl backfill");
    expect((await startBackfill(pages, asked)).status).toBe(303);
  });
  expect(command).toContain("--source two");
  expect(startedByPage.backfill).toHaveLength(1);
  expect(await byCommand(`${command} --detach`)).toEqual(startedByPage);
});

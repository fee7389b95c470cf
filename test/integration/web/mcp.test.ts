import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { GROUPINGS } from "../../../src/core/domain/usage/record.ts";
import { openStory } from "../../support/browser/site.ts";
import { createPrices } from "../../support/charges.ts";
import { environment, usageEtl } from "../../support/cli.ts";
import { now } from "../../support/clock.ts";
import { call, connected, overHttp, refusal, response, rowsOf } from "../../support/mcp.ts";
import { TOKENS } from "../../support/pages.ts";
import { iso, storyOf } from "../../support/story.ts";
import { costsBy, inSchema } from "../../support/views.ts";

/** A month that is closed and restated, a gap, a refused day, a difference from the export, and names as no platform should give them. */
let site: Awaited<ReturnType<typeof openStory>>;
let reader: pg.Client;
let days: { month: string; from: string; gap: string; today: string };

beforeAll(async () => {
  site = await openStory({ environment: TOKENS });
  const { month, gap, today } = storyOf(now());
  days = {
    month: iso(month.start).slice(0, 7),
    from: iso(month.start),
    gap: iso(gap.start),
    today: iso(today),
  };
  await createPrices(site.store, [{ unitPrice: "0.0005", from: "2020-01-01" }]);
  reader = new pg.Client({ connectionString: site.databaseUrl, options: "-c jit=off -c timezone=UTC" });
  await reader.connect();
});

afterAll(async () => {
  await reader?.end();
  await site?.close();
});

function overStdio(args: readonly string[] = [], role?: string) {
  const url = new URL(site.databaseUrl);
  if (role !== undefined) url.searchParams.set("options", `-c role=${role}`);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ["src/cli.js", "mcp", ...args],
    env: { ...environment(), DATABASE_URL: url.href },
    stderr: "pipe",
  });
  return connected(transport);
}

const sql = async (text: string, values: unknown[] = []) => (await reader.query(text, values)).rows;

test("each way to connect offers the same tools, and a query gives the figures of the views", async () => {
  for (const client of [await overStdio(), await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN)]) {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(
      ["list_views", "describe_view", "query", "bill", "explain_invoice", "why_changed", "status"].sort(),
    );
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
    for (const by of GROUPINGS) {
      for (const [view, figures] of [
        [
          inSchema(`fct_usage_${by}_daily`),
          "sum(traces) AS figure, count(*) FILTER (WHERE traces IS NULL) AS missing",
        ],
        [costsBy(by), "sum(estimated_cost) AS figure, count(*) AS lines"],
      ] as const) {
        const text = `SELECT usage_date, workspace_id, ${figures} FROM ${view} GROUP BY 1, 2 ORDER BY 1 DESC, 2 LIMIT 400`;
        const expected = await sql(`SELECT json_agg(q) AS rows FROM (${text}) q`);
        expect(expected[0].rows.length, view).toBeGreaterThan(10);
        expect(await rowsOf(client, text), view).toEqual(expected[0].rows);
      }
    }
  }
});

test("list_views and describe_view show what the role may read, with the comments of the database and an example", async () => {
  for (const [token, role] of [
    [TOKENS.USAGE_WEB_TOKEN, "usage_reader"],
    [TOKENS.USAGE_WEB_READ_TOKEN, "usage_reader_masked"],
  ] as const) {
    const client = await overHttp(site.url, token);
    const listed: { view: string; about: string }[] = (await response(client, "list_views")).views;
    const views = await sql(
      `SELECT c.oid::regclass::text AS view, obj_description(c.oid) AS about FROM pg_class c
       WHERE c.relkind = 'v' AND c.relnamespace::regnamespace::text IN ('reporting', 'reporting_detail')
         AND has_table_privilege($1, c.oid, 'SELECT')`,
      [role],
    );
    const sorted = (rows: readonly { view: string }[]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(sorted(listed.filter(({ view }) => !view.includes("(")))).toEqual(sorted(views));
    expect(listed.some(({ view }) => view.includes("_as_of"))).toBe(true);
    for (const { view, about } of listed.filter(({ view }) => !view.includes("("))) {
      const columns = await sql(
        `SELECT attname AS column, format_type(atttypid, NULL) AS type, col_description(attrelid, attnum) AS about
         FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum`,
        [view],
      );
      expect(await response(client, "describe_view", { view })).toMatchObject({ view, about, columns });
    }
    for (const { view } of listed) {
      const { example, grain, key } = await response(client, "describe_view", { view });
      expect([grain.length > 0, key.length > 0], view).toEqual([true, true]);
      expect((await response(client, "query", { sql: example })).next_cursor, example).toBe(null);
    }
  }
});

test("no tool shows an address to a read token, or to a client with --masked", async () => {
  const operator = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  expect(JSON.stringify(await rowsOf(operator, "SELECT user_email FROM dim_user"))).toContain("example.com");
  const listed: { view: string }[] = (await response(operator, "list_views")).views;
  const views = listed.map(({ view }) => view).filter((view) => !view.includes("("));
  for (const [viewer, read] of [
    [await overHttp(site.url, TOKENS.USAGE_WEB_READ_TOKEN), views],
    [await overStdio(["--masked"]), views.filter((view) => /user/.test(view))],
  ] as const) {
    const said = [
      await call(viewer, "bill", { month: days.month }),
      await call(viewer, "why_changed", { from_day: days.from, to_day: days.today }),
      await call(viewer, "status"),
    ];
    for (const view of read) said.push(await call(viewer, "query", { sql: `SELECT * FROM ${view}` }));
    const texts = said.map(({ text }) => text);
    expect(texts.filter((text) => /example\.com/.test(text))).toEqual([]);
    expect(texts.some((text) => text.includes("permission denied for view dim_user."))).toBe(true);
  }
});

test("the bill is that of the view", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_READ_TOKEN);
  const [{ month }] = await sql(
    "SELECT to_char(max(month_start), 'YYYY-MM') AS month FROM reporting.usage_bill_monthly",
  );
  const billed = await response(client, "bill", { month });
  const lines = await sql(
    `SELECT trim_scale(quantity)::text AS quantity, trim_scale(estimated_cost)::text AS cost, is_final AS "isFinal",
       is_proved AS "isProved", is_closed AS "isClosed"
     FROM reporting.usage_bill_monthly WHERE month_start = $1::date ORDER BY line_number`,
    [`${month}-01`],
  );
  expect(billed.lines).toMatchObject(lines);
  const totals = await sql(
    `SELECT currency, trim_scale(sum(estimated_cost))::text AS cost FROM reporting.usage_bill_monthly
     WHERE month_start = $1::date AND estimated_cost IS NOT NULL GROUP BY 1`,
    [`${month}-01`],
  );
  expect(billed.totals).toEqual(totals);
});

test("why_changed names restatements, differences, and what a closed month has more now", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_READ_TOKEN);
  const range = { from_day: days.from, to_day: days.today };
  const changes = await response(client, "why_changed", range);
  const [view] = await sql(
    `SELECT sum(closed_traces)::float8 AS closed, sum(adjustment_traces)::float8 AS more
     FROM reporting_detail.fct_close WHERE group_by = 'workspace'`,
  );
  expect(changes.closed_months_with_other_traces).toEqual([
    { month: days.month, closedTraces: view.closed, netTraces: view.more, hasCosts: false },
  ]);
  const [counts] = await sql(
    `SELECT (SELECT count(*)::integer FROM ${inSchema("usage_reconciliation")}) AS differences,
            (SELECT count(*)::integer FROM ${inSchema("usage_restatement")}) AS restated`,
  );
  const all: { change: string; workspaceId?: string }[] = changes.changes;
  const listed = all.filter(({ workspaceId }) => workspaceId !== undefined);
  const by = Map.groupBy(listed, ({ change }) => change === "restatement");
  expect([by.get(false)?.length, by.get(true)?.length]).toEqual([counts.differences, counts.restated]);
  expect(all.map(({ change }) => change)).toEqual(expect.arrayContaining(["prices", "close"]));
  const [workspace_id = ""] = listed.map(({ workspaceId }) => workspaceId);
  const ofOne = await response(client, "why_changed", { ...range, workspace_id });
  expect(ofOne.changes).toEqual(all.filter(({ workspaceId = workspace_id }) => workspaceId === workspace_id));
});

test("a wrong request is refused with what is wrong and the next step", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  const range = { from_day: days.from, to_day: days.today };
  const refused: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ["why_changed", { ...range, from_day: "2026-02-30" }, /from_day.*not a day.*2026-03-01/],
    ["why_changed", { ...range, group_by: "user" }, /group_by/],
    [
      "why_changed",
      { ...range, workspace_id: "no such" },
      /"no such" is not a known workspace.*\[workspace_unknown\]/,
    ],
    ["why_changed", { ...range, source: "no such" }, /\[source_unknown\]/],
    ["bill", { month: "2026-13" }, /\[month_invalid\]/],
    ["bill", { month: "9999-01" }, /has not begun.*\[month_not_begun\]/],
    ["describe_view", { view: "dim_usr" }, /Did you mean dim_user\?.*\[view_unknown\]/],
    [
      "query",
      { sql: "SELECT user_mail FROM dim_user" },
      /"user_mail" does not exist.*dim_user\.user_email.*\[query_refused\]/,
    ],
    ["query", { sql: "" }, /sql/],
    ["query", { sql: "SELECT '\0'" }, /\[(query_refused|unexpected)\]/],
    ["query", { sql: `SELECT '${"x".repeat(20_000)}'` }, /sql/],
  ];
  for (const [name, args, says] of refused)
    expect(await refusal(client, name, args), JSON.stringify(args)).toMatch(says);
});

test("a login that may read everything is enough, and one that reads views alone is told what it lacks", async () => {
  const client = await overStdio([], "pg_read_all_data");
  const owner = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  for (const [tool, args] of [
    ["query", { sql: "SELECT current_user, count(*) AS users FROM dim_user" }],
    ["bill", { month: days.today.slice(0, 7) }],
    ["why_changed", { from_day: days.from, to_day: days.today }],
    ["list_views", {}],
  ] as const)
    expect(await response(client, tool, args), tool).toEqual(await response(owner, tool, args));
  const env = { DATABASE_URL: `${site.databaseUrl}?options=${encodeURIComponent("-c role=usage_reader")}` };
  const { code, stdout, stderr } = await usageEtl(["mcp"], env);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain("[login_of_reader]");
});

test("stdout is the protocol's alone, also for a client of the year before, and the server ends with its client", async () => {
  const child = spawn(process.execPath, ["src/cli.js", "mcp"], {
    env: { ...environment(), DATABASE_URL: site.databaseUrl, USAGE_LOG_LEVEL: "debug" },
  });
  const ended = once(child, "close");
  onTestFinished(() => void child.kill("SIGKILL"));
  const messages: { readonly id?: number; readonly result?: unknown }[] = [];
  const lines = createInterface({ input: child.stdout });
  const clientInfo = { name: "test", version: "1" };
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  send({
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo },
  });
  child.stdin.write("no message at all\n");
  send({ method: "notifications/initialized" });
  send({ id: 2, method: "tools/call", params: { name: "query", arguments: { sql: "SELECT 'zürich'" } } });
  send({ id: 3, method: "tools/call", params: { name: "bill", arguments: { month: "soon" } } });
  for await (const line of lines) {
    messages.push(JSON.parse(line));
    if (messages.length === 3) child.stdin.end();
  }
  const [code] = await ended;
  expect(code).toBe(0);
  expect(messages.map(({ id }) => id).sort()).toEqual([1, 2, 3]);
  expect(messages.find(({ id }) => id === 3)?.result).toMatchObject({ isError: true });
});

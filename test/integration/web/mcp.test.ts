import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { addDays, addMonths } from "../../../src/domain/time/days.ts";
import { openStory } from "../../support/browser/site.ts";
import { enterPrices } from "../../support/charges.ts";
import { environment, usageEtl } from "../../support/cli.ts";
import { HOSTILE } from "../../support/hostile.ts";
import { type Answer, answer, ask, connected, overHttp } from "../../support/mcp.ts";
import { TOKENS } from "../../support/pages.ts";
import { poll } from "../../support/poll.ts";
import { iso, storyOf } from "../../support/story.ts";
import { inSchema } from "../../support/views.ts";

/** A month that is closed and restated, a gap, a refused day, a difference from the export, and names as no platform should give them. */
let site: Awaited<ReturnType<typeof openStory>>;
let reader: pg.Client;
let days: { month: string; from: string; gap: string; today: string };

beforeAll(async () => {
  site = await openStory({ environment: TOKENS });
  const { month, gap, today } = storyOf(Date.now());
  days = {
    month: iso(month.start).slice(0, 7),
    from: iso(month.start),
    gap: iso(gap.start),
    today: iso(today),
  };
  await enterPrices(site.store, [{ unitPrice: "0.0005", from: "2020-01-01" }]);
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

test("each way to ask gives the figures of the views, with what they can claim", async () => {
  for (const client of [await overStdio(), await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN)]) {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual([
      "bill",
      "cost",
      "coverage",
      "differences",
      "find",
      "usage",
    ]);
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
    for (const by of ["workspace", "project", "user", "api_key"]) {
      const asked = { by, from: days.from, to: days.today, rows: 100 };
      const used = await answer(client, "usage", asked);
      const [view] = await sql(
        `SELECT sum(traces)::float8 AS traces, bool_and(traces IS NOT NULL) AS whole FROM ${inSchema(`fct_usage_${by}_daily`)}
         WHERE usage_date >= $1::date AND usage_date < $2::date`,
        [asked.from, asked.to],
      );
      expect(view.whole).toBe(false);
      expect(used).toMatchObject({
        total: { amount: null, amount_loaded: view.traces, state: "missing" },
        ...{ is_complete: false, is_final: false, is_proved: false, is_closed: false },
        closed_months: [{ month: days.month }],
      });
      // What is missing is named, by workspace.
      const gaps = await sql(
        `SELECT DISTINCT workspace_id, usage_date::text AS day FROM ${inSchema(`fct_usage_${by}_daily`)}
         WHERE usage_date >= $1::date AND usage_date < $2::date AND traces IS NULL ORDER BY 1, 2`,
        [asked.from, asked.to],
      );
      expect(missingDays(used)).toEqual(gaps.map(({ workspace_id, day }) => `${workspace_id} ${day}`));
      const own = await sql(
        `SELECT dimension_id AS id, max(dimension_name) AS name, sum(traces)::float8 AS amount FROM (
           SELECT ${by === "api_key" ? "api_key_short_key" : `${by}_id`} AS dimension_id, ${NAMES[by] ?? "NULL"} AS dimension_name, traces
           FROM ${inSchema(`fct_usage_${by}_daily`)} WHERE usage_date >= $1::date AND usage_date < $2::date
         ) f WHERE traces > 0 AND dimension_id <> '(none)' GROUP BY dimension_id ORDER BY 3 DESC, dimension_id COLLATE "C"`,
        [asked.from, asked.to],
      );
      const lines = used.lines.filter(({ id }) => id !== null);
      expect(lines.map((one) => [one.id, one.name, one.amount ?? one.amount_loaded])).toEqual(
        own.map(({ id, name, amount }) => [id, name, amount]),
      );
    }
  }
});

const NAMES: Readonly<Record<string, string>> = {
  workspace: "workspace_name",
  project: "project_name",
  user: "user_email",
};

function missingDays({ missing }: Answer): string[] {
  return missing.listed
    .flatMap(({ workspace_id, listed }) =>
      listed.flatMap(({ from, to }) => {
        const found: string[] = [];
        for (let day = from; day < to; day = addDays(day, 1)) found.push(`${workspace_id} ${day}`);
        return found;
      }),
    )
    .sort();
}

test("a closed month is said to be closed, final and proved, and what changed since", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_READ_TOKEN);
  const month = { from: days.from, to: addMonths(days.from, 1) };
  const used = await answer(client, "usage", { ...month, per: "day" });
  const [view] = await sql(
    `SELECT sum(closed_traces)::float8 AS closed, sum(current_traces)::float8 AS now FROM reporting_detail.fct_month_close_by_dimension
     WHERE group_by = 'workspace'`,
  );
  expect(used).toMatchObject({
    total: { amount: view.now },
    ...{ is_complete: true, is_final: true, is_closed: true },
    closed_months: [{ month: days.month, closed_traces_of_all_workspaces: view.closed }],
    missing: { workspaces: 0, listed: [] },
  });
  expect(used.notes.join(" ")).toContain(
    `was closed with ${view.closed} traces of all workspaces, and has 25 more now`,
  );
  expect(used.total.per_day.reduce((sum, { amount }) => sum + amount, 0)).toBe(view.now);
  const proved = await sql(
    `SELECT bool_and(is_final AND proved_at IS NOT NULL) AS proved FROM reporting.fct_usage_workspace_daily
     WHERE usage_date >= $1::date AND usage_date < $2::date`,
    [month.from, month.to],
  );
  expect(used.is_proved).toBe(proved[0].proved);
  // It was closed without its costs, and a close keeps nothing but traces of all tiers and costs.
  expect(await answer(client, "bill", { month: days.month })).toMatchObject({
    is_closed: false,
    closed_months: [{ month: days.month, costs_closed_at: null }],
  });
  const other = { ...month, measure: "agent_runs" };
  expect(await answer(client, "coverage", other)).toMatchObject({ is_closed: false });
});

test("costs and the bill are those of the views", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  const [from, to] = [addDays(days.today, -2), days.today];
  for (const by of ["workspace", "project", "user", "api_key"]) {
    const costs = await answer(client, "cost", { by, from, to });
    const [view] = await sql(
      `SELECT trim_scale(sum(estimated_cost))::text AS cost FROM ${inSchema(`fct_cost_${by}_daily`)}
       WHERE usage_date >= $1::date AND usage_date < $2::date`,
      [from, to],
    );
    expect(costs).toMatchObject({
      unit: "USD",
      total: { amount: view.cost },
      is_complete: true,
      is_closed: false,
    });
  }
  const [month = ""] = (
    await sql("SELECT to_char(max(month_start), 'YYYY-MM') AS month FROM reporting.usage_bill_monthly")
  ).map((row) => row.month);
  const billed = await answer(client, "bill", { month });
  const lines = await sql(
    `SELECT trim_scale(quantity)::text AS quantity, trim_scale(estimated_cost)::text AS cost, is_final, is_proved, is_closed
     FROM reporting.usage_bill_monthly WHERE month_start = $1::date ORDER BY line_number`,
    [`${month}-01`],
  );
  expect(billed.lines).toMatchObject(lines);
});

test("coverage and differences are those of the views", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  const asked = { from: days.from, to: days.today };
  const covered = await answer(client, "coverage", asked);
  const statuses = await sql(
    `SELECT stride, status, count(*)::integer AS days, min(usage_date)::text AS first_day, max(usage_date)::text AS last_day
     FROM ${inSchema("usage_coverage_daily")} WHERE group_by = 'workspace' AND usage_date >= $1::date AND usage_date < $2::date GROUP BY 1, 2`,
    [asked.from, asked.to],
  );
  const sorted = (rows: readonly object[]) =>
    rows.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort();
  expect(sorted(covered.workspace_days)).toEqual(sorted(statuses));
  expect(missingDays(covered).some((day) => day.endsWith(days.gap))).toBe(true);
  expect(covered.traces_up_to).toMatchObject({ final: days.gap, closed: addMonths(days.from, 1) });

  const found = await answer(client, "differences", { rows: 100 });
  const [counts] = await sql(
    `SELECT (SELECT count(*)::integer FROM ${inSchema("usage_reconciliation")} WHERE state IN ('open', 'platform_disagrees')) AS open,
            (SELECT count(*)::integer FROM ${inSchema("usage_restatement")}) AS restated`,
  );
  expect(counts.restated).toBeGreaterThan(0);
  const by = Map.groupBy(found.differences, ({ says }) => says === "restatement");
  expect([by.get(false)?.length, by.get(true)?.length]).toEqual([counts.open, counts.restated]);
  const one = await answer(client, "differences", { rows: 1 });
  expect(one.differences).toHaveLength(1);
  expect(one.notes).toEqual(["Only the first 1 are listed. Ask for more rows, or narrow the question."]);
});

test("a read token sees users by their id, however they are looked for, and so does a client with --masked", async () => {
  const [email = ""] = HOSTILE.emails;
  const operator = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  const { found } = await answer(operator, "find", { find: email.toUpperCase(), kind: "user" });
  expect(found).toMatchObject([{ kind: "user", name: email }]);
  const id = found[0]?.id ?? "";
  for (const viewer of [
    await overHttp(site.url, TOKENS.USAGE_WEB_READ_TOKEN),
    await overStdio(["--masked"]),
  ]) {
    const said = [
      await answer(viewer, "find", { find: "example.com" }),
      await answer(viewer, "find", { find: id }),
      await answer(viewer, "usage", {
        by: "user",
        from: days.from,
        to: days.today,
        rows: 100,
        find: "example.com",
      }),
      await answer(viewer, "usage", { by: "user", from: days.from, to: days.today, rows: 100 }),
      await answer(viewer, "cost", { by: "user", from: addDays(days.today, -30), to: days.today, rows: 100 }),
      await answer(viewer, "differences", { state: "all", rows: 100 }),
    ];
    expect(JSON.stringify(said)).not.toMatch(/example\.com(?!\\" in its name)/);
    expect(said[0]?.found).toEqual([]);
    const [masked] = await sql("SELECT user_email FROM reporting_detail.dim_user_masked WHERE user_id = $1", [
      id,
    ]);
    expect(said[1]?.found).toMatchObject([{ id, name: masked.user_email }]);
    expect(said[3]?.lines.find((line) => line.id === id)?.name).toBe(masked.user_email);
  }
});

test("a wrong question is refused with what is wrong and the next step, or answered as empty", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  const range = { from: days.from, to: days.today };
  const refused: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ["usage", { from: "2026-02-30", to: days.today }, /from.*not a day.*2026-03-01/],
    ["usage", { from: days.today, to: days.from }, /is not before to .* \[range_reversed\]/],
    ["usage", { from: days.from, to: days.from }, /Give a later day.* \[range_reversed\]/],
    ["usage", { from: "1999-01-01", to: "2999-12-31" }, /731 at most.*\[range_too_long\]/],
    ["usage", { ...range, rows: 1e9 }, /rows.*100/],
    ["usage", { ...range, rows: 0 }, /rows/],
    ["usage", { ...range, group_by: "user" }, /group_by/],
    [
      "usage",
      { ...range, workspace: "no such" },
      /"no such" is not a known workspace.*\[workspace_unknown\]/,
    ],
    ["usage", { ...range, source: "no such" }, /\[source_unknown\]/],
    ["usage", { ...range, find: "a\0b" }, /NUL/],
    ["usage", { ...range, by: "user", measure: "lcu" }, /\[usage_/],
    ["cost", { ...range, currency: "EUR" }, /No price is in EUR.*USD.*\[currency_unknown\]/],
    [
      "cost",
      { from: addDays(days.today, -200), to: days.today, by: "project", currency: "'; drop" },
      /currency/,
    ],
    [
      "coverage",
      { ...range, by: "user", measure: "lcu" },
      /does not split sandbox usage by user.*\[dimension_unknown\]/,
    ],
    ["bill", { month: "2026-13" }, /\[month_invalid\]/],
    ["bill", { month: "9999-01" }, /has not begun.*\[month_not_begun\]/],
    ["differences", { from: days.today, to: days.from }, /\[range_reversed\]/],
  ];
  for (const [name, args, says] of refused) {
    const said = await ask(client, name, args).catch((error: Error) => error.message);
    expect(said, JSON.stringify(args)).toMatch(says);
  }
  const early = await answer(client, "usage", { from: "1999-01-01", to: "1999-02-01" });
  expect(early).toMatchObject({ total: null, lines: [] });
  expect(early.notes[0]).toContain("There is nothing to show. Usage of default begins on");
  const late = await answer(client, "usage", { from: "2999-01-01", to: "2999-02-01" });
  expect(late.notes[0]).toContain("the range lies in the future");
  const sandboxes = await answer(client, "coverage", { ...range, measure: "lcu" });
  expect(sandboxes).toMatchObject({ workspaces: 0, is_complete: false });
  expect(sandboxes.notes[0]).toContain("which is not zero");
  expect((await answer(client, "find", { find: "'; DROP TABLE usage.source; --" })).found).toEqual([]);
  expect((await answer(client, "coverage", { from: "1999-01-01", to: "1999-02-01" })).is_complete).toBe(
    false,
  );
});

test("a client that asks much at once takes half of the pages' connections, and is told to ask less", async () => {
  const client = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  const [extra, waiting] = [3, 20];
  await sql("BEGIN");
  await sql("LOCK TABLE usage.source");
  const questions = Array.from({ length: 2 + waiting + extra }, () =>
    ask(client, "find", { find: "no such" }),
  );
  let refused = 0;
  for (const one of questions) {
    one.then((said) => {
      if (typeof said === "string") refused++;
    });
  }
  await poll(() => refused === extra, { deadlineMs: 7_000 });
  const held = async () => {
    const [row] = await sql(
      "SELECT count(*)::integer AS held FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
    return row?.held;
  };
  await poll(async () => (await held()) === 2, { deadlineMs: 7_000 });
  // No other comes.
  expect(await held()).toBe(2);
  await sql("COMMIT");
  const said = await Promise.all(questions);
  expect(said.filter((one) => typeof one === "string")).toEqual(
    Array(extra).fill(expect.stringContaining("[mcp_busy]")),
  );
});

test("a login that may read everything is enough, and one that reads views alone is told what it lacks", async () => {
  const asked = { by: "user", from: days.from, to: days.today };
  const client = await overStdio([], "pg_read_all_data");
  const owner = await overHttp(site.url, TOKENS.USAGE_WEB_TOKEN);
  for (const [tool, args] of [
    ["usage", asked],
    ["cost", { ...asked, from: addDays(days.today, -10) }],
    ["bill", { month: days.today.slice(0, 7) }],
    ["coverage", { from: days.from, to: days.today }],
    ["differences", {}],
    ["find", { find: "e" }],
  ] as const)
    expect(await answer(client, tool, args), tool).toEqual(await answer(owner, tool, args));
  const env = { DATABASE_URL: `${site.databaseUrl}?options=${encodeURIComponent("-c role=usage_reader")}` };
  const { code, stdout, stderr } = await usageEtl(["mcp"], env);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain("[login_of_reader]");
});

test("a signal ends it although its client is still there", async () => {
  const child = spawn(process.execPath, ["src/cli.js", "mcp"], {
    env: { ...environment(), DATABASE_URL: site.databaseUrl },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })}\n`);
  await once(child.stdout, "data");
  child.kill("SIGTERM");
  expect(await once(child, "close")).toEqual([0, null]);
}, 20_000);

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
  send({ id: 2, method: "tools/call", params: { name: "find", arguments: { find: "zürich" } } });
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

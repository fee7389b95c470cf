import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { STANDARD_UNITS } from "../../src/core/domain/usage/meter.ts";
import { type Ended, start, usageEtl } from "../support/cli.ts";
import { now } from "../support/clock.ts";
import { createTestDatabase } from "../support/database.ts";
import { poll } from "../support/poll.ts";
import { copyRelease } from "../support/release.ts";
import { farFromTheNextHour } from "../support/source.ts";
import { dump } from "../support/tables.ts";

const ENV = { USAGE_HOURLY_FOR: "P5D" };

interface Shown {
  requests: number;
  reconciliation: { differences: unknown[]; compared: number };
  totals: { workspace: string; traces: number }[];
}

const demo = (url: string) => usageEtl(["demo", "--once", "--json"], { ...ENV, DATABASE_URL: url });

function shown(ended: Ended): Shown {
  expect([
    ended.code,
    ended.stderr.replace(/^(\{"note":")?(Pages: |Postgres: |Health and metrics: ).*\n/gm, ""),
  ]).toEqual([0, ""]);
  const round = JSON.parse(ended.stdout) as Shown;
  expect(round.reconciliation.differences).toEqual([]);
  expect(round.reconciliation.compared).toBeGreaterThan(10_000);
  return round;
}

const finalUntil = () => (Math.floor(now() / DAY_MS) - 3) * DAY_MS;

type Sql = <Row>(text: string, given?: unknown[]) => Promise<Row[]>;

async function withClient<T>(url: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    return await work(async (text, given = []) => (await client.query(text, given)).rows);
  } finally {
    await client.end();
  }
}

async function final(url: string): Promise<string[]> {
  const cut = new Date(finalUntil()).toISOString().slice(0, 10);
  const { records } = await withClient(url, (sql) => dump({ sql }));
  return records.filter((line) => (/ (\d{4}-\d{2}-\d{2})/.exec(line)?.[1] ?? "") < cut);
}

async function emptyDatabase(): Promise<string> {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return url;
}

test("the demo finds no difference, fetches little the second time, and stores the same after a kill", async () => {
  await farFromTheNextHour(90_000);
  const url = await emptyDatabase();
  const first = shown(await demo(url));
  const before = await final(url);

  const second = shown(await demo(url));
  expect(await final(url)).toEqual(before);
  expect(second.requests).toBeLessThan(first.requests / 2);

  const other = await emptyDatabase();
  const running = start(["demo", "--once", "--json"], { ...ENV, DATABASE_URL: other });
  await poll(() => loadedSoFar(other).then((count) => count >= 60), { deadlineMs: 30_000, everyMs: 5 });
  running.process.kill("SIGKILL");
  expect((await running.ended).stdout).toBe("");
  shown(await demo(other));
  expect(await final(other)).toEqual(before);
});

test("a demo serves its pages before it loads, and commands find it while it runs where nothing is configured", async () => {
  const release = copyRelease();
  const unset = { USAGE_ENV_FILE: "" };
  const where = { release, cwd: release };
  const command = (args: string[], env = {}) => usageEtl(args, { ...unset, ...env }, where);
  expect((await command(["status"])).stderr).toContain(
    "DATABASE_URL is not set, and no usage-etl.env is in this folder.\n",
  );
  const running = start(["demo"], { ...ENV, ...unset }, where);
  await poll(() => running.said.stderr.includes("Platform: "), { deadlineMs: 60_000 });
  const [, pages = ""] = /^Pages: (http:\S+\/)$/m.exec(running.said.stderr) ?? [];
  expect(running.said.stderr.startsWith(`Pages: ${pages}\n`)).toBe(true);
  expect((await fetch(pages)).status).toBe(200);
  expect((await command(["status"])).stderr).toContain("this uses the running demo");
  await poll(() => running.said.stderr.includes("until Ctrl-C"), { deadlineMs: 240_000 });
  expect(running.said.stdout).toContain(", 0 differences left");
  expect(running.said.stderr).not.toContain("task not loaded");

  const note = `Nothing is configured here, so this uses the running demo (process ${running.process.pid}). Its pages: ${pages}\n`;
  const of = async <T>(code: number, ...args: string[]) => {
    const ended = await command([...args, "--json"]);
    expect([args, ended.code, ended.stderr]).toEqual([
      args,
      code,
      `${JSON.stringify({ note: note.trim() })}\n`,
    ]);
    return JSON.parse(ended.stdout) as T;
  };
  const status = await of<{ source: string; alerts: { kind: string; message: string }[] }[]>(3, "status");
  expect(status.map(({ source }) => source)).toEqual(["demo", "demo-bill", "demo-trouble"]);
  const invoices = JSON.parse((await command(["invoice", "list", "--json"])).stdout);
  expect(invoices).toMatchObject([{ source: "demo-bill", fileForm: "pdf", acceptedDifference: null }]);
  expect(status[1]?.alerts.find(({ kind }) => kind === "unusual")?.message).toMatch(
    /^Unusual days\. .*Most of the difference is of project /,
  );
  expect(running.said.stderr).toMatch(
    /Source demo-bill shows the whole bill[\s\S]* [1-9]\d* are equal, 1 differ/,
  );
  const totals = await of<{ source: string; findings: object[] }[]>(4, "totals", "--provider");
  expect(totals.map(({ source, findings }) => [source, findings.length])).toEqual([
    ["demo", 0],
    ["demo-trouble", 0],
    ["demo-bill", 1],
  ]);
  expect(await of(0, "backfill", "list")).toMatchObject([{ source: "demo-trouble", state: "paused" }]);
  expect(await of<unknown[]>(0, "prices", "list")).toHaveLength(4);
  await of(0, "doctor");
  const database = /psql '([^']+)'/.exec(running.said.stderr)?.[1] ?? "";
  const explained = await of<Explained>(4, "invoice", "explain", invoices[0].number);
  const [{ lines }] = await of<[{ lines: InvoiceLine[] }]>(0, "invoice", "show", invoices[0].number);
  await withClient(database, async (sql) => {
    await checkOwners(sql);
    await checkBill(sql);
    await checkInvoice(sql, explained, lines);
    await checkPlanted(sql, running.said.stderr);
  });
  const other = await command(["status"], { DATABASE_URL: "postgresql://me@127.0.0.1:9/mine" });
  expect([other.code, other.stderr.includes("running demo")]).toEqual([6, false]);

  running.process.kill("SIGKILL");
  await running.ended;
  const ended = await command(["status"]);
  expect([ended.code, ended.stdout]).toEqual([2, ""]);
  expect(ended.stderr).toContain(
    "DATABASE_URL is not set, and no usage-etl.env is in this folder. No demo runs: the last one was killed.\n",
  );
});

/** What the demo says that it planted is in the views, and nothing else. */
async function checkPlanted(sql: Sql, said: string): Promise<void> {
  const [, refused, from = "", to = ""] = /refused (.+) from (\S+) to (\S+), and/.exec(said) ?? [];
  const [, changed, failing] = /the users of (.+) on (\S+), each/.exec(said) ?? [];
  const [, restated] = /a count of (\S+) changed/.exec(said) ?? [];
  const [, differing] = /the export of (\S+) says/.exec(said) ?? [];
  const dimensions = ["api_key", "project", "user", "workspace"];
  const rows = (text: string) => sql(text, ["demo-trouble"]);
  const days = await rows(
    `SELECT c.group_by, c.usage_date::text AS day, w.workspace_name AS of FROM reporting_detail.usage_coverage_daily c
     JOIN reporting.dim_workspace w USING (source_id, workspace_id)
     WHERE source_id = $1 AND stride = 'day' AND status = 'failed' ORDER BY 1, 2`,
  );
  const gap = Array.from({ length: (Date.parse(to) - Date.parse(from)) / DAY_MS }, (_, day) =>
    new Date(Date.parse(from) + day * DAY_MS).toISOString().slice(0, 10),
  );
  expect(days).toEqual(
    dimensions.flatMap((group_by) => [
      ...(group_by === "user" ? [{ group_by, day: failing, of: changed }] : []),
      ...gap.map((day) => ({ group_by, day, of: refused })),
    ]),
  );
  const restatements = await rows(
    `SELECT group_by, (period_start AT TIME ZONE 'UTC')::date::text AS day, (new_amount - old_amount)::integer AS more
     FROM reporting_detail.usage_restatement WHERE source_id = $1 ORDER BY 1`,
  );
  expect(restatements).toEqual(dimensions.map((group_by) => ({ group_by, day: restated, more: 120 })));
  const differences = await rows(
    `SELECT group_by, (period_start AT TIME ZONE 'UTC')::date::text AS day, (other_amount - stored_amount)::integer AS more
     FROM reporting_detail.usage_reconciliation WHERE source_id = $1 AND state = 'platform_disagrees' ORDER BY 1`,
  );
  expect(differences).toEqual(dimensions.map((group_by) => ({ group_by, day: differing, more: 25 })));
  const closed = await rows(
    `SELECT period_start <= $2 AND $2 < period_start + interval '1 month' AS holds_it, sum(adjustment_traces)::integer AS more
     FROM reporting_detail.fct_close WHERE source_id = $1 AND group_by = 'workspace' GROUP BY 1`.replaceAll(
      "$2",
      `'${restated}'::date`,
    ),
  );
  expect(closed).toEqual([{ holds_it: true, more: 120 }]);
}

async function checkOwners(sql: Sql): Promise<void> {
  const owners = await sql<{ source: string; owner: string }>(
    "SELECT DISTINCT source_id AS source, owner FROM reporting.fct_usage_owner_daily WHERE traces > 0 ORDER BY 1, 2",
  );
  const ofSource = (slug: string) => owners.filter(({ source }) => source === slug).map(({ owner }) => owner);
  const all = ["(unallocated)", "checkout", "platform", "quality", "search", "support"];
  expect(ofSource("demo")).toEqual(all);
  expect(ofSource("demo-bill")).toEqual(all);
  expect(ofSource("demo-trouble")).toEqual(["(unallocated)"]);
  const costs = await sql<{ sku: string; owners: number }>(
    "SELECT sku, count(DISTINCT owner)::integer AS owners FROM reporting.fct_cost_owner_daily WHERE estimated_cost > 0 GROUP BY 1 ORDER BY 1",
  );
  expect(costs.map(({ sku }) => sku)).toEqual([
    "Long-lived traces",
    "Sandbox compute",
    "Sandbox storage",
    "Traces",
  ]);
  for (const { sku, owners } of costs) expect([sku, owners > 2]).toEqual([sku, true]);
}

async function checkBill(query: Sql): Promise<void> {
  const sql = (text: string, given: unknown[] = []) => query<Record<string, string>>(text, given);
  const [month] = await sql(
    `SELECT to_char(b.month_start, 'YYYY-MM-DD') AS start, to_char(b.month_start + interval '1 month', 'YYYY-MM-DD') AS end, s.base_url AS url,
              (b.month_start = date_trunc('month', s.data_start) + interval '1 month')::text AS planted
       FROM reporting.usage_bill_monthly b JOIN usage.source s ON s.slug = b.source_id
       WHERE b.source_id = 'demo-bill' AND b.line IN ('charge', 'estimate', 'unpriced')
       GROUP BY b.month_start, s.base_url, s.data_start HAVING bool_and(b.is_final) ORDER BY b.month_start DESC LIMIT 1`,
  );
  if (month === undefined) throw new Error("no month of demo-bill is final");
  const bill = await sql(
    `SELECT measure, line, trim_scale(sum(quantity))::text AS quantity, trim_scale(sum(estimated_cost))::text AS cost, bool_and(is_proved) AS proved
       FROM reporting.usage_bill_monthly WHERE source_id = 'demo-bill' AND month_start = $1 AND line <> 'not_reported' GROUP BY 1, 2 ORDER BY 1`,
    [month.start],
  );
  const workspaces = await sql(
    "SELECT workspace_id AS id FROM reporting.dim_workspace WHERE source_id = 'demo-bill'",
  );
  const sums = await responsesOf({
    ...(month as unknown as Month),
    workspaces: workspaces.map(({ id = "" }) => id),
  });
  const sum = (measure: string) => sums.get(measure) ?? 0n;
  const costs = costsOf(sums);
  const isStandard = (measure: string) => STANDARD_UNITS.some((one) => one === measure);
  const lineOf = (measure: string) => {
    if (isStandard(measure)) return "counted_apart";
    return measure in costs ? "charge" : measure === "spend_usd" ? "not_invoiced" : "not_charged";
  };
  const isProved = (measure: string) => !["lcu", "lsu"].includes(measure) && !isStandard(measure);
  const expected = [...sums.keys()].sort().map((measure) => {
    const cost = costs[measure];
    return {
      measure,
      line: lineOf(measure),
      quantity: decimal(sum(measure)),
      cost: cost === undefined ? null : decimal(cost),
      proved: isProved(measure),
    };
  });
  const shown = ({ proved, ...one }: Record<string, unknown>) =>
    month.planted === "true" ? { ...one, proved } : one;
  expect(bill.map(shown)).toEqual(expected.map(shown));
  expect(bill).toHaveLength(10);
  const unknown = await sql(
    "SELECT measure FROM reporting.usage_bill_monthly WHERE source_id = 'demo-bill' AND month_start = $1 AND line = 'not_reported'",
    [month.start],
  );
  const isFromOctober = (month.start ?? "") >= "2026-10-01";
  expect(unknown.map(({ measure }) => measure).sort()).toEqual(
    isFromOctober ? ["deployment_lcu", "deployment_lsu"] : [],
  );
  for (const view of ["focus_1_4_cost_and_usage", "focus_1_4_cost_and_usage_by_resource"]) {
    const charged = await sql(
      `SELECT trim_scale(sum("BilledCost"))::text AS cost FROM reporting_detail.${view}
         WHERE "x_SourceId" = 'demo-bill' AND "x_BillingMonth" = $1`,
      [month.start],
    );
    const whole = Object.values(costs).reduce((one, other) => one + other);
    expect([view, charged]).toEqual([view, [{ cost: decimal(whole) }]]);
  }
}

function costsOf(sums: ReadonlyMap<string, bigint>): Record<string, bigint> {
  const sum = (measure: string) => sums.get(measure) ?? 0n;
  const tiered = (count: bigint, edge: bigint, [below, above]: readonly [bigint, bigint]) => {
    const first = count < edge ? count : edge;
    return (first * below + (count - first) * above) * (UNIT / 10_000n);
  };
  return {
    traces: tiered(sum("traces") / UNIT, 100_000n, [50n, 40n]),
    longlived: tiered(sum("longlived") / UNIT, 10_000n, [0n, 45n]),
    lcu: (sum("lcu") * 3n) / 2n,
    lsu: sum("lsu"),
  };
}

interface Explained {
  readonly total: string;
  readonly bill: string;
  readonly remainder: string;
  readonly causes: readonly Cause[];
  readonly unexplained: readonly Cause[];
}

interface Cause {
  readonly cause: string;
  readonly why?: string;
  readonly sku: string | null;
  readonly workspaceId: string | null;
  readonly lineNumber: number | null;
  readonly quantity: string | null;
  readonly amount: string;
}

interface InvoiceLine {
  readonly text: string;
  readonly isSum: boolean;
  readonly partOf: number | null;
  readonly kind: string;
  readonly workspace: string | null;
  readonly periodStart: string | null;
  readonly quantity: string | null;
  readonly unitPrice: string | null;
  readonly amount: string;
}

const UNIT = 1_000_000_000n;
const CENT = UNIT / 100n;

const unitsOf = (text: string | null) => {
  const [whole = "", fraction = ""] = (text ?? "0").replace("-", "").split(".");
  const size = BigInt(whole + fraction.slice(0, 9).padEnd(9, "0"));
  return text?.startsWith("-") ? -size : size;
};
const sumOf = (amounts: readonly bigint[]) => amounts.reduce((sum, one) => sum + one, 0n);
const inCents = (amount: bigint) => ((amount + CENT / 2n) / CENT) * CENT;

/** The invoice is explained but for the planted overcharge. Each cause is computed again from the platform's responses. */
async function checkInvoice(
  sql: Sql,
  { total, bill, remainder, causes, unexplained }: Explained,
  lines: readonly InvoiceLine[],
): Promise<void> {
  const start = lines.find(({ kind }) => kind === "usage")?.periodStart ?? "";
  const [year = 0, month = 0] = start.split("-").map(Number);
  const end = new Date(Date.UTC(year, month)).toISOString().slice(0, 10);
  const known = await sql<{ id: string; url: string }>(
    `SELECT w.workspace_id AS id, s.base_url AS url FROM reporting.dim_workspace w JOIN usage.source s ON s.slug = w.source_id
     WHERE w.source_id = 'demo-bill'`,
  );
  const workspaces = known.map(({ id }) => id);
  const sums = await responsesOf({ start, end, url: known[0]?.url ?? "", workspaces });
  expect(unitsOf(bill)).toBe(sumOf(Object.values(costsOf(sums))));

  expect(remainder).toBe("12.34");
  expect(unexplained).toMatchObject([{ why: "arithmetic", amount: "12.34", sku: "Traces" }]);
  const overcharged = lines[(unexplained[0]?.lineNumber ?? 0) - 1];
  const product = (unitsOf(overcharged?.quantity ?? null) * unitsOf(overcharged?.unitPrice ?? null)) / UNIT;
  expect(unitsOf(overcharged?.amount ?? null) - inCents(product)).toBe(unitsOf("12.34"));

  const of = (cause: string) => causes.filter((one) => one.cause === cause);
  const amounts = (cause: string) => of(cause).map(({ amount }) => unitsOf(amount));
  const added = new Date(Date.UTC(year, month - 1, 14));
  const daysLeft = BigInt((Date.parse(end) - added.getTime()) / DAY_MS);
  const days = BigInt((Date.parse(end) - Date.parse(start)) / DAY_MS);
  expect(amounts("seat")).toEqual([195n * UNIT, inCents((39n * UNIT * daysLeft) / days)]);
  expect(amounts("credit")).toEqual([-50n * UNIT]);
  const untaxed = lines.filter(({ kind, partOf }) => kind !== "tax" && partOf === null);
  expect(amounts("tax")).toEqual([
    inCents((sumOf(untaxed.map(({ amount }) => unitsOf(amount))) * 19n) / 100n),
  ]);
  // The workspace that nobody here reads fills no first tier, because the others have filled it.
  const unread = lines.filter((one) => one.workspace !== null && !workspaces.includes(one.workspace));
  const unreadUnits = (text: string) =>
    sumOf(
      unread
        .filter((line) => !line.isSum && (lines[line.partOf ?? -1] ?? line).text === text)
        .map(({ quantity }) => unitsOf(quantity)),
    );
  expect(of("unread_workspace").map(({ sku, quantity, amount }) => [sku, quantity, unitsOf(amount)])).toEqual(
    (
      [
        ["Traces", "LangSmith Traces", 40n],
        ["Long-lived traces", "LangSmith Traces (Extended Data Retention Upgrades)", 45n],
        ["Sandbox compute", "Sandbox Compute (LCU)", 15_000n],
        ["Sandbox storage", "Sandbox Storage (LSU)", 10_000n],
      ] as const
    ).map(([sku, text, price]) => {
      const quantity = unreadUnits(text);
      return [sku, decimal(quantity), inCents((quantity * price) / 10_000n)];
    }),
  );
  // What the platform counts now, and did not when the invoice was issued.
  const invoiced = lines.filter(
    ({ workspace, partOf }) =>
      workspaces.includes(workspace ?? "") && lines[partOf ?? -1]?.text.endsWith("Upgrades)"),
  );
  const late = sumOf(invoiced.map(({ quantity }) => unitsOf(quantity))) - (sums.get("longlived") ?? 0n);
  expect(late).toBeLessThan(0n);
  const [change, ...others] = of("changes");
  expect([change?.sku, change?.quantity, others]).toEqual(["Long-lived traces", decimal(late), []]);
  const unrounded = unitsOf(change?.amount ?? null) - (late * 45n) / 10_000n;
  expect(unrounded < CENT && unrounded > -CENT).toBe(true);
  // What is left is cents: rounding, and tiers that the invoice divides otherwise among workspaces.
  const left = causes.filter(({ cause }) => ["rounding", "counted_over"].includes(cause));
  for (const { amount } of left) expect(Math.abs(Number(amount))).toBeLessThan(0.05);
  const named = new Set(["seat", "credit", "tax", "unread_workspace", "changes", "rounding", "counted_over"]);
  expect(causes.filter(({ cause }) => !named.has(cause))).toEqual([]);
  const whole = [...causes, ...unexplained].map(({ amount }) => unitsOf(amount));
  expect(unitsOf(bill) + sumOf(whole)).toBe(unitsOf(total));
}

interface Month {
  readonly start: string;
  readonly end: string;
  readonly url: string;
  readonly workspaces: readonly string[];
}

function decimal(billionths: bigint): string {
  const fraction = (billionths % UNIT).toString().padStart(9, "0").replace(/0+$/, "");
  return `${billionths / UNIT}${fraction === "" ? "" : `.${fraction}`}`;
}

async function responsesOf({ start, end, url, workspaces }: Month): Promise<Map<string, bigint>> {
  const sums = new Map<string, bigint>();
  const add = (measure: string, amount: string | number | undefined) => {
    if (amount === undefined) return;
    const [whole = "0", fraction = ""] = (typeof amount === "number" ? amount.toFixed(9) : amount).split(".");
    const unit = BigInt(whole) * UNIT + BigInt(fraction.padEnd(9, "0"));
    sums.set(measure, (sums.get(measure) ?? 0n) + unit);
  };
  const get = async (path: string, query: [string, string][], workspace?: string) => {
    const headers = {
      "x-api-key": "standin-key",
      ...(workspace === undefined ? {} : { "x-tenant-id": workspace }),
    };
    const response = await fetch(`${url}${path}?${new URLSearchParams(query)}`, { headers });
    expect([path, response.status]).toEqual([path, 200]);
    // biome-ignore lint/suspicious/noExplicitAny: whatever the platform says.
    return (await response.json()) as any;
  };
  const range: [string, string][] = [
    ["start_time", `${start}T00:00:00Z`],
    ["end_time", `${end}T00:00:00Z`],
  ];
  const ids = workspaces.map((id): [string, string] => ["workspace_ids", id]);
  for (const kind of ["traces", "langsmith_deployments"]) {
    const response = await get("/api/v1/orgs/current/billing/granular-usage", [
      ...range,
      ...ids,
      ["kind", kind],
    ]);
    const measures =
      kind === "traces" ? ["traces"] : ["nodes_executed", "agent_runs", "agent_uptime_seconds"];
    for (const record of response.usage) for (const measure of measures) add(measure, record[measure]);
  }
  const upgraded = await get("/api/v1/orgs/current/billing/granular-usage", [
    ...range,
    ...ids,
    ["kind", "traces"],
    ["trace_tier", "longlived"],
  ]);
  for (const { traces } of upgraded.usage) add("longlived", traces);
  for (const workspace of workspaces) {
    // A day counts only if each of its items has a number.
    const standard = new Map<string, (string | null)[]>();
    for (let cursor: string | null = ""; cursor !== null; ) {
      const after: [string, string][] = cursor === "" ? [] : [["cursor", cursor]];
      const page = await get(
        "/api/v2/sandboxes/usage/costs",
        [...range, ["page_size", "100"], ...after],
        workspace,
      );
      for (const { lcu, lsu, period_start, ...item } of page.items) {
        add("lcu", lcu);
        add("lsu", lsu);
        for (const measure of STANDARD_UNITS) {
          const key = `${measure} ${period_start.slice(0, 10)}`;
          standard.set(key, [...(standard.get(key) ?? []), item[measure]]);
        }
      }
      cursor = page.next_cursor;
    }
    for (const [key, units] of standard)
      if (!units.includes(null)) for (const one of units) add(key.split(" ")[0] as string, one as string);
    for (let day = Date.parse(start); day < Date.parse(end); day += 7 * DAY_MS) {
      const week = new Date(day).toISOString().slice(0, 10);
      const query: [string, string][] = [
        ["period_start", week],
        ["group_by", "run_rule"],
      ];
      const { groups } = await get("/v1/platform/evaluators/spend", query, workspace);
      for (const { days } of groups)
        for (const { date, spend_usd } of days) if (date < end) add("spend_usd", spend_usd);
    }
  }
  return sums;
}

async function loadedSoFar(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query(
      "SELECT count(*)::integer AS n FROM usage.fetch WHERE outcome = 'loaded'",
    );
    return rows[0].n;
  } catch {
    return 0;
  } finally {
    await client.end().catch(() => {});
  }
}

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import pg from "pg";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { openStore, type Store } from "../../src/core/store/db/database.ts";
import { CARRIED_SETTINGS, SESSION_SETTINGS } from "../../src/core/store/db/session.ts";
import { listReporting } from "../../src/core/store/db/views.ts";
import { SCREENS } from "./browser/screens.ts";
import { now } from "./clock.ts";
import { pastPooler } from "./database.ts";
import { runHere } from "./in-process.ts";
import { overHttp, response } from "./mcp.ts";
import { openPages } from "./pages.ts";
import { asJson, steady } from "./same-figures/program.ts";
import { rowsOfViews } from "./same-figures/views.ts";
import { type Bench, senderOn } from "./source.ts";
import { iso, storyOf } from "./story.ts";

/** Defaults of a role or database, each far from the server's. */

type Settings = Readonly<Record<string, string>>;

/** None of them may change a byte. */
export const ODD: Settings = {
  DateStyle: "German",
  IntervalStyle: "iso_8601",
  TimeZone: "Pacific/Kiritimati",
  default_transaction_isolation: "serializable",
  default_transaction_deferrable: "on",
  search_path: "shadow, pg_catalog",
  bytea_output: "escape",
  standard_conforming_strings: "off",
  extra_float_digits: "-15",
  array_nulls: "off",
  transform_null_equals: "on",
  lock_timeout: "1",
  statement_timeout: "300",
  row_security: "off",
  client_encoding: "LATIN1",
  quote_all_identifiers: "on",
  jit: "on",
};

const SHADOW = `
  CREATE SCHEMA shadow;
  CREATE FUNCTION shadow.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT '1999-01-01Z'::timestamptz$$;
  CREATE FUNCTION shadow.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT '1999-01-01Z'::timestamptz$$;
  CREATE FUNCTION shadow.lower(text) RETURNS text LANGUAGE sql AS $$SELECT 'shadow'::text$$;
  GRANT USAGE ON SCHEMA shadow TO public`;

export interface Defaults {
  readonly level: "role" | "database";
  readonly settings: Settings;
}

export type Outcome = Map<string, string>;

export async function withDefaults<T>(
  url: string,
  { level, settings }: Defaults,
  work: (url: string) => Promise<T>,
): Promise<T> {
  const admin = new pg.Client({ connectionString: await pastPooler(url) });
  await admin.connect();
  const database = new URL(url).pathname.slice(1);
  const role = `${database}_odd`;
  const subject = level === "role" ? `ROLE ${role}` : `DATABASE ${database}`;
  const login = { username: role, password: "odd" };
  try {
    await admin.query(SHADOW);
    if (level === "role") await admin.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD 'odd'`);
    for (const [name, value] of Object.entries(settings)) {
      const literal = name === "search_path" ? value : pg.escapeLiteral(value);
      await admin.query(`ALTER ${subject} SET ${name} = ${literal}`);
    }
    return await work(level === "role" ? Object.assign(new URL(url), login).href : url);
  } finally {
    const dropped = level === "role" ? `; DROP OWNED BY ${role}; DROP ROLE ${role}` : "";
    await admin
      .query(`ALTER DATABASE ${database} RESET ALL; DROP SCHEMA shadow CASCADE${dropped}`)
      .finally(() => admin.end());
  }
}

const PRICES =
  "sku,unit_price,currency,valid_from,from_quantity,measure\nall,0.5,USD,2020-01-01,0,traces\nall,0.25,USD,2020-01-01,1000,traces\n";
const OWNERS = `
divide_by: project
rules:
  - {workspace: WORKSPACE, shares: [{owner: red, share: 0.6}, {owner: blue, cost_center: CC-1, share: 0.4}]}
`;
const UNKNOWN = "99999999-9999-4999-8999-999999999999";

export async function writings(bench: Bench, url: string): Promise<Outcome> {
  const { standin, today, dataStart, workspaceIds } = bench;
  const env = {
    ...envOf(url, standin),
    USAGE_WORKSPACE_IDS: workspaceIds.join(","),
    USAGE_DATA_START: iso(dataStart),
    USAGE_HOURLY_FOR: "PT24H",
  };
  const said: Outcome = new Map();
  await inFolder(async (folder) => {
    const run = sayInto(said, env, folder);
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    await run("sync", "--inline");
    const differing = senderOn(standin, 0, today - 4 * DAY_MS);
    standin.discrepancies.push({ format: "csv", stride: "day", delta: 7, cell: differing });
    await run("reconcile");
    await run("migrate");
    await run("totals");
    await run("prices", "import", file("prices.csv", PRICES));
    await run("owners", "apply", file("owners.yaml", OWNERS.replace("WORKSPACE", workspaceIds[0] ?? "")));
    const close = ["close", iso(dataStart).slice(0, 7), "--without-costs"];
    await run(...close);
    const [, digest] = /--accept ([0-9a-f]+)/.exec([...said.values()].join()) ?? [];
    if (digest !== undefined) await run(...close, "--accept", digest);
    standin.ledger.change(senderOn(standin, 0, today - 5 * DAY_MS), 25);
    const range = ["--from", iso(today - 6 * DAY_MS), "--to", iso(today - 4 * DAY_MS)];
    await run("backfill", ...range, "--reprocess", "all", "--inline");
    await run("reconcile", "--repair");
    await run("workspace", "add", UNKNOWN, "--force");
    await run("workspace", "forget", UNKNOWN);
    await run("prune");
    await run("files", "write", "--to", join(folder, "files"));
    const later = iso(today - 8 * DAY_MS);
    await sayInto(said, { ...env, USAGE_DATA_START: later }, folder)("data-start", later);
  });
  return said;
}

export async function stored({ databaseUrl }: Bench): Promise<Outcome> {
  const views = await rowsOfViews(databaseUrl);
  return new Map([...views].map(([name, lines]) => [name, stillText(lines.join("\n"))]));
}

/** Rows of every view for a session of somebody else, which has these defaults. */
export async function seenBy(url: string): Promise<Outcome> {
  const client = new pg.Client({
    connectionString: url,
    types: { getTypeParser: () => (text: string) => text },
  });
  await client.connect();
  try {
    await client.query("SET statement_timeout = 0; SET lock_timeout = 0; SET jit = off");
    const { rows: views } = await client.query<{ name: string; view: string }>(
      `SELECT viewname AS name, format('%I.%I', schemaname, viewname) AS view FROM pg_catalog.pg_views
       WHERE schemaname LIKE 'reporting%' ORDER BY 1`,
    );
    for (const { name, view } of views)
      await client.query(`CREATE TEMP TABLE "${name}" AS SELECT * FROM ${view}`);
    for (const [setting, value] of Object.entries({
      ...CARRIED_SETTINGS,
      ...SESSION_SETTINGS,
      client_encoding: "UTF8",
    }))
      await client.query("SELECT pg_catalog.set_config($1, $2, false)", [setting, value]);
    const seen: Outcome = new Map();
    for (const { name } of views) {
      const { rows } = await client.query(`SELECT * FROM pg_temp."${name}"`);
      const lines = rows.map((row) => stillText(JSON.stringify(row)));
      seen.set(name, lines.sort().join("\n"));
    }
    return seen;
  } finally {
    await client.end();
  }
}

export async function readings(url: string): Promise<Outcome> {
  const story = storyOf(now());
  const month = iso(story.month.start).slice(0, 7);
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const said: Outcome = new Map();
  const env = envOf(url, standin);
  await inFolder(async (folder) => {
    const run = sayInto(said, env, folder);
    for (const command of [
      "status",
      "source list",
      "workspace list",
      "data-start",
      "alerts list",
      "backfill list",
      "backfill show 1",
      "runs list",
      "runs show 1",
      "prices list",
      "owners export",
      "owners suggest",
      "owners budgets",
      `bill ${month}`,
      `bill ${month} --by owner`,
      "coverage",
      "coverage --days",
      `plan --from ${iso(story.gap.start)} --to ${iso(story.gap.end)}`,
      "doctor",
    ])
      await run(...command.split(" "));
    const store = openStore({ url });
    const views = await listReporting(store.db).finally(() => store.close());
    for (const [at, { name, isAsOf }] of views.entries()) {
      const format = at % 2 === 0 ? "csv" : "json";
      const asOf = isAsOf ? ["--as-of", iso(story.restated.end)] : [];
      const file = join(folder, "rows");
      const { code, stderr } = await runHere(
        ["export", "--view", name, "--format", format, ...asOf, "--out", file],
        env,
      );
      const rows = code === 0 ? readFileSync(file, "utf8") : stderr;
      said.set(`export ${name} ${format}`, stillText(`${code} ${rows}`).replaceAll(folder, "FOLDER"));
    }
  });
  const store = openStore({ url });
  const pages = await openPages({ databaseUrl: url, standin, store });
  try {
    const workspace = await firstWorkspace(store);
    for (const { path } of SCREENS)
      said.set(path, stillText((await pages.get(path.replace("WORKSPACE", workspace))).text));
    said.set("tools", stillText(await toolsOf(pages.url, story)));
  } finally {
    await pages.close();
    await store.close();
  }
  return said;
}

async function firstWorkspace({ db }: Store): Promise<string> {
  const { rows } = await sql<{
    id: string;
  }>`select min(workspace_id) as id from reporting.dim_workspace`.execute(db);
  return rows[0]?.id ?? "";
}

async function toolsOf(url: string, story: ReturnType<typeof storyOf>): Promise<string> {
  const client = await overHttp(url);
  const calls: [string, object][] = [
    ["list_views", {}],
    ["describe_view", { view: "fct_usage_workspace_daily" }],
    [
      "query",
      {
        sql: "SELECT usage_date, traces, now() > '2020-01-01' AS later, 1.1::float8 / 3 AS f FROM fct_usage_workspace_daily ORDER BY 1, 2 LIMIT 50",
      },
    ],
    [
      "query",
      { sql: "SELECT group_by, stride, loaded_until, final_until FROM data_freshness ORDER BY 1, 2" },
    ],
    ["bill", { month: iso(story.month.start).slice(0, 7) }],
    ["why_changed", { from_day: iso(story.month.start), to_day: iso(story.month.end) }],
    ["status", {}],
  ];
  const texts = [];
  for (const [name, args] of calls) texts.push(JSON.stringify(await response(client, name, { ...args })));
  await client.close();
  return texts.join("\n");
}

export const envOf = (url: string, { url: base, apiKey }: { url: string; apiKey: string }) => ({
  DATABASE_URL: url,
  USAGE_BASE_URL: base,
  USAGE_API_KEY: apiKey,
  USAGE_RATE_LIMIT: "1000",
});

function sayInto(said: Outcome, env: Readonly<Record<string, string>>, folder: string) {
  return async (...args: string[]) => {
    const text = stillText(asJson(await runHere([...args, "--json"], env))).replaceAll(folder, "FOLDER");
    said.set(`${said.size} ${args.slice(0, 2).join(" ")}`.replaceAll(folder, "FOLDER"), text);
  };
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-settings-"));
  await work(folder).finally(() => rmSync(folder, { recursive: true, force: true }));
}

function stillText(text: string): string {
  return steady(text)
    .replaceAll(/(?<=name="_csrf" value=")[^"]*/g, "")
    .replaceAll(/(?<=(?:lag_s|oldestS|\bs)econds(?: = |":"?))[\d.]+/g, "")
    .replaceAll(/(?<=,(?:day|hour),\S*,INSTANT,)\d+$/gm, "")
    .replaceAll(/(?<=postgresql:\/\/)\w+(?=:)/g, "LOGIN")
    .replaceAll(/[\d,]+(?= MiB free)/g, "")
    .replaceAll(/\d+ min(?: DURATION)?/g, "DURATION");
}

export function differences(left: Outcome, right: Outcome): string[] {
  return [...new Set([...left.keys(), ...right.keys()])].flatMap((name) => {
    const [a = "(nothing)", b = "(nothing)"] = [left.get(name), right.get(name)];
    if (a === b) return [];
    let at = 0;
    while (a[at] === b[at]) at++;
    const shown = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 80));
    return [`${name}: ${shown(a)} became ${shown(b)}`];
  });
}

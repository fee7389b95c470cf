import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import pg from "pg";
import { Pool } from "undici";
import { readConfig, requireDatabaseUrl } from "../../src/core/base/config.ts";
import { openStore } from "../../src/core/store/db/database.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { resolveRedis } from "../../src/features/servers/redis.ts";
import { createOutput, table } from "../../src/terminal/output.ts";
import { now } from "../support/clock.ts";
import type { Spent } from "./count-queries.ts";

/**
 * `DATABASE_URL=... npm run bench:pages`: how long each of the operator's pages takes from the request to its last byte, what CPU
 * time of Node and of Postgres (where it runs on the same Linux) that is, and how many statements it sends. On a machine that does other
 * work, CPU times say more. A service of its own (`--role http`) serves them. `npm run bench:views -- --keep` makes a
 * database of three years. It migrates the database, and changes nothing else.
 */

const DAY_MS = 86_400_000;
const CLI = fileURLToPath(new URL("../../src/cli.js", import.meta.url));
const COUNTER = fileURLToPath(new URL("count-queries.ts", import.meta.url));

interface Options {
  readonly rounds: number;
  readonly only?: string;
}

interface Line {
  readonly page: string;
  readonly status: number;
  readonly medianMs: number;
  readonly p95Ms: number;
  readonly nodeMs: number;
  readonly postgresMs: number | undefined;
  readonly statements: number;
  readonly bytes: number;
}

const options = new Command("bench:pages")
  .option("--rounds <n>", "requests of each page, after a first one", Number, 21)
  .option("--only <text>", "only pages with that text in their address")
  .parse()
  .opts<Options>();
const output = createOutput({ json: false });
const databaseUrl = requireDatabaseUrl(readConfig({ DATABASE_URL: process.env.DATABASE_URL })).reveal();
const redis = await resolveRedis();
const folder = mkdtempSync(join(tmpdir(), "usage-etl-bench-pages-"));
const store = openStore({ url: databaseUrl });
await migrate(store);
await store.close();
const client = new pg.Client({ connectionString: databaseUrl });
await client.connect();
const service = await startService();
const http = new Pool(service.url, { connections: 1 });
try {
  const lines: Line[] = [];
  for (const page of ["/livez", ...(await pages())].filter((one) => one.includes(options.only ?? ""))) {
    output.note(page);
    lines.push(await measure(page, () => get(page)));
  }
  const floor = await measure("SELECT 1", async () => {
    await client.query("SELECT 1");
    return { status: 0, bytes: 0 };
  });
  const { rows } = await client.query(`
    SELECT version() AS version, count(*)::integer AS records,
           (SELECT count(*)::integer FROM usage.workspace) AS workspaces FROM usage.hourly_record`);
  const [found] = rows;
  process.stdout.write(
    `${table(
      ["page", "status", "median ms", "p95 ms", "CPU of Node", "of Postgres", "statements", "kB"],
      [floor, ...lines].map((one) => [
        shortened(one.page),
        one.status,
        one.medianMs,
        one.p95Ms,
        one.nodeMs,
        one.postgresMs ?? null,
        one.statements,
        Math.round(one.bytes / 1000),
      ]),
    )}\n\n` +
      `${found.records.toLocaleString("en-US")} hourly records, ${found.workspaces} workspaces. ${/^\S+ \S+/.exec(found.version)?.[0]}, Node ${process.version}, ${availableParallelism()} cores, ${options.rounds} rounds.\n`,
  );
} finally {
  await http.close();
  await client.end();
  service.process.disconnect();
  service.process.kill("SIGTERM");
  await once(service.process, "exit");
  await redis.close();
  rmSync(folder, { recursive: true });
}

/** The addresses that the pages link to, with the largest ranges that somebody would ask for. */
async function pages(): Promise<string[]> {
  const { rows } = await client.query<{ source: string; workspace: string; start: Date }>(`
    SELECT s.slug AS source, e.external_id AS workspace, s.data_start::timestamp AT TIME ZONE 'UTC' AS start
    FROM usage.source s JOIN usage.entity e USING (source_id) JOIN usage.workspace w USING (entity_id)
    ORDER BY s.source_id, e.entity_id LIMIT 1`);
  const [first] = rows;
  if (first === undefined) throw new Error("the database holds no source");
  const { rows: backfills } = await client.query("SELECT max(backfill_id) AS id FROM usage.backfill");
  const today = Math.floor(now() / DAY_MS) * DAY_MS;
  const day = (ago: number) => new Date(today - ago * DAY_MS).toISOString().slice(0, 10);
  const [start, month] = [first.start.toISOString().slice(0, 10), day(40).slice(0, 7)];
  const of = `source=${first.source}`;
  const scope = `${of}&workspace=${first.workspace}`;
  return [
    "/",
    `/coverage?${of}`,
    `/coverage?${of}&stride=day&from=${start}&to=${day(0)}`,
    `/coverage?${scope}&stride=day&group_by=project&from=${day(60)}&to=${day(30)}`,
    `/coverage?${scope}&stride=hour&group_by=project&from=${day(10)}&to=${day(3)}`,
    `/cell?${scope}&group_by=project&stride=day&from=${day(10)}&to=${day(9)}`,
    "/backfills",
    ...(backfills[0].id === null ? [] : [`/backfills/${backfills[0].id}`]),
    `/backfills/new?${of}&from=${start}&to=${day(0)}&stride=day`,
    `/usage?${of}`,
    `/usage?${of}&by=user&per=day&from=${day(90)}&to=${day(0)}`,
    `/usage?${of}&by=user&per=hour&from=${day(7)}&to=${day(0)}`,
    `/usage?${of}&by=project&per=month&from=${start}&to=${day(0)}`,
    `/usage?${of}&by=user&per=day&measure=cost&from=${day(30)}&to=${day(0)}`,
    `/usage?${of}&by=user&per=day&measure=cost&from=${day(365)}&to=${day(0)}`,
    `/usage.csv?${of}&by=user&per=day&from=${day(90)}&to=${day(0)}`,
    `/owners?${of}`,
    `/owners?${of}&month=${month}`,
    `/differences?${of}`,
    `/months?${of}`,
    `/months/${month}?${of}`,
    `/timeline?${of}`,
  ];
}

async function measure(page: string, load: () => Promise<{ status: number; bytes: number }>): Promise<Line> {
  await load();
  const before = await spent();
  const { status, bytes } = await load();
  const first = await spent();
  const times: number[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const from = performance.now();
    await load();
    times.push(performance.now() - from);
  }
  const last = await spent();
  times.sort((a, b) => a - b);
  const at = (share: number) => rounded(times[Math.ceil(share * times.length) - 1] ?? 0);
  return {
    page,
    status,
    bytes,
    medianMs: at(0.5),
    p95Ms: at(0.95),
    statements: first.statements - before.statements,
    nodeMs: rounded((last.cpuMs - first.cpuMs) / options.rounds),
    postgresMs: last.sessions && rounded(sinceOf(first.sessions, last.sessions) / options.rounds),
  };
}

function rounded(ms: number): number {
  return Number(ms.toFixed(1));
}

async function get(path: string): Promise<{ status: number; bytes: number }> {
  const { statusCode, body } = await http.request({ path, method: "GET", headers: { accept: "text/html" } });
  return { status: statusCode, bytes: (await body.bytes()).byteLength };
}

function shortened(page: string): string {
  return page.replaceAll(/(?:source|workspace)=[^&]*&?/g, "").replace(/[?&]$/, "");
}

type Sessions = ReadonlyMap<number, number>;

async function spent(): Promise<Spent & { sessions: Sessions | undefined }> {
  service.process.send("count");
  const [own] = await once(service.process, "message");
  return { ...(own as Spent), sessions: await sessions() };
}

/** CPU time of the service's sessions so far, as Linux counts it. */
async function sessions(): Promise<Sessions | undefined> {
  const { rows } = await client.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'usage-etl' AND datname = current_database()",
  );
  try {
    const spentNs = (pid: number) => Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]);
    return new Map(rows.map(({ pid }) => [pid, spentNs(pid) / 1e6]));
  } catch {
    return undefined;
  }
}

function sinceOf(first: Sessions | undefined, last: Sessions): number {
  return [...last].reduce((sum, [pid, ms]) => sum + ms - (first?.get(pid) ?? 0), 0);
}

/** `serve --role http` with the sources of the database. It asks their platforms nothing. */
async function startService(): Promise<{
  process: ChildProcess & { send(message: string): void };
  url: string;
}> {
  const { rows } = await client.query<{ slug: string; base_url: string }>(
    "SELECT slug, base_url FROM usage.source",
  );
  const file = join(folder, "sources.json");
  const sources = rows.map(({ slug, base_url: baseUrl }) => ({ slug, baseUrl, apiKey: "none" }));
  writeFileSync(file, JSON.stringify(sources));
  const child = spawn(process.execPath, ["--import", COUNTER, CLI, "serve", "--role", "http"], {
    env: {
      PATH: process.env.PATH,
      USAGE_ENV_FILE: "/dev/null",
      USAGE_SOURCES_FILE: file,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      HTTP_PORT: "0",
    },
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  let said = "";
  for await (const piece of child.stderr ?? []) {
    said += piece;
    const [url] = /http:\/\/\S+?:\d+/.exec(said) ?? [];
    if (url !== undefined && said.includes("serving as")) {
      child.stderr?.resume();
      return { process: child as ChildProcess & { send(message: string): void }, url };
    }
  }
  throw new Error(`the service ended: ${said}`);
}

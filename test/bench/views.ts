import { once } from "node:events";
import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { createOutput, table } from "../../src/cli/report/output.ts";
import { resolvePostgres } from "../../src/local/servers/resolve.ts";
import { openStore } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { analyzeStale } from "../../src/store/db/statistics.ts";
import { median } from "./harness.ts";
import { seedUsage } from "./views-data.ts";
import { QUESTIONS, type Question } from "./views-questions.ts";

/**
 * `npm run bench:views`: how long the views take to answer over three years of hours, beside the same questions put to the
 * record tables without any helper. Warm, one question at a time, until the last row has come. With 50 million records
 * (`--records 50000000`) it needs 10 GB of disk and ten minutes; `--keep` leaves the database of `DATABASE_URL` for the next run.
 */

interface Options {
  readonly records: number;
  readonly seed: number;
  readonly workspaces?: number;
  readonly years?: number;
  readonly rounds: number;
  readonly rawRounds: number;
  readonly only?: string;
  readonly keep?: boolean;
  readonly plans?: boolean;
  readonly json?: boolean;
}

const whole = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError("It is not a whole number.");
  return value;
};
const options = new Command("bench:views")
  .description("questions put to the views, beside the same put to the raw records")
  .option("--records <n>", "hourly records, about", whole, 1_000_000)
  .option("--seed <n>", "of the made-up usage", whole, 1)
  .option("--workspaces <n>", "so many workspaces, each with a project, a key and users", whole)
  .option("--years <n>", "so many years in place of three; 0.5 is half a year", Number)
  .option("--rounds <n>", "rounds of the views; medians are shown", whole, 7)
  .option("--raw-rounds <n>", "rounds of the raw questions, which may take long", whole, 1)
  .option("--only <text>", "only questions with that text in their name")
  .option("--keep", "leave the database, and use it where it is there")
  .option("--plans", "print each plan with its buffers")
  .option("--json", "one JSON document on stdout")
  .parse()
  .opts<Options>();

/** Above it Postgres compiles a plan first, which takes longer than these questions may. */
const JIT_ABOVE_COST = 100_000;

interface Line {
  readonly question: string;
  readonly rows: number;
  readonly limitMs: number | undefined;
  readonly instead: string | undefined;
  readonly viewMs: number;
  readonly slowestMs: number;
  /** Undefined where the server cannot compile. */
  readonly compiledMs: number | undefined;
  readonly cost: number;
  readonly buffers: number;
  readonly hoursMs: number | undefined;
  readonly daysMs: number | undefined;
}

const output = createOutput({ json: options.json ?? false });
const service = await resolvePostgres();
const admin = new pg.Client({ connectionString: service.url });
await admin.connect();
const shape = [
  options.workspaces && `w${options.workspaces}`,
  options.years && `m${Math.round(options.years * 12)}`,
];
const name = ["usage_etl_bench_views", options.records, options.seed, ...shape].filter(Boolean).join("_");
const url = Object.assign(new URL(service.url), { pathname: `/${name}` }).href;
try {
  await prepare();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("SET TIME ZONE 'UTC'; SET jit = on");
  const { rows } = await client.query(`
    SELECT version() AS version, current_setting('shared_buffers') AS buffers, current_setting('work_mem') AS work_mem,
           pg_jit_available() AS jit, count(*)::integer AS records,
           pg_size_pretty(pg_database_size(current_database())) AS size
    FROM usage.hourly_record`);
  const { jit } = rows[0];
  await client.query("SET jit = off");
  const lines: Line[] = [];
  for (const question of QUESTIONS.filter(({ name }) => name.includes(options.only ?? ""))) {
    lines.push(await measure(client, question, jit));
  }
  await client.end();
  const machine = { ...rows[0], node: process.version, cores: availableParallelism(), seed: options.seed };
  output.data({ machine, lines }, () =>
    [
      describe(lines),
      "",
      `${machine.records} hourly records (seed ${machine.seed}), ${machine.size}. ${/^\S+ \S+/.exec(machine.version)?.[0]}, shared_buffers ${machine.buffers}, work_mem ${machine.work_mem}, ${machine.cores} cores.`,
      `Medians of ${options.rounds} warm rounds until the last row; raw of ${options.rawRounds}. Cost above ${JIT_ABOVE_COST}: compiled first where JIT is on${machine.jit ? "" : "; this server cannot"}.`,
    ].join("\n"),
  );
} finally {
  if (options.keep !== true) await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await admin.end();
  await service.close();
}

/** The database, filled and with today's views. */
async function prepare(): Promise<void> {
  const found = await admin.query("SELECT FROM pg_database WHERE datname = $1", [name]);
  if (found.rowCount === 0) await admin.query(`CREATE DATABASE ${name}`);
  const store = openStore({ url });
  await migrate(store);
  await store.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rowCount } = await client.query("SELECT FROM usage.hourly_record LIMIT 1");
  if (rowCount === 0) {
    output.note(`seed ${options.seed}: about ${options.records} hourly records`);
    await seedUsage(client, options, (line) => output.note(line));
    // What the product does after its loads.
    const filled = openStore({ url });
    output.note(`analyzed: ${(await analyzeStale(filled.db)).join(", ")}`);
    await filled.close();
    // Index-only scans need pages that vacuum has seen. Autovacuum comes once an hour to a temporary server; by default every minute.
    for (const table of ["hourly_record", "dated_record"]) await client.query(`VACUUM usage.${table}`);
    output.note("vacuumed, as autovacuum does");
  }
  await client.end();
}

async function measure(client: pg.Client, question: Question, canCompile: boolean): Promise<Line> {
  const { name, view, hours, days, limitMs, instead } = question;
  output.note(name);
  const raw = async (text: string | undefined) =>
    text === undefined || options.rawRounds === 0
      ? undefined
      : median((await times(client, text, options.rawRounds)).ms);
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${view}`);
  const { Plan: plan } = rows[0]["QUERY PLAN"][0];
  if (options.plans === true) await showPlan(client, view);
  const asked = await times(client, view, options.rounds);
  await client.query("SET jit = on");
  const compiled = canCompile ? await times(client, view, options.rounds) : undefined;
  await client.query("SET jit = off");
  return {
    question: name,
    rows: asked.rows,
    limitMs,
    instead,
    viewMs: median(asked.ms),
    slowestMs: Math.max(...asked.ms),
    compiledMs: compiled && median(compiled.ms),
    cost: plan["Total Cost"],
    buffers: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
    hoursMs: await raw(hours),
    daysMs: await raw(days),
  };
}

/** Until the last byte has come: what a client makes of it is its own affair. */
async function times(
  client: pg.Client,
  text: string,
  rounds: number,
): Promise<{ ms: number[]; rows: number }> {
  const ms: number[] = [];
  let rows = 0;
  // The first one is not counted: it warms the caches.
  for (let round = 0; round <= rounds; round++) {
    const startedAt = performance.now();
    const stream = client.query(copyTo(`COPY (${text}) TO STDOUT`));
    stream.resume();
    await once(stream, "end");
    if (round > 0) ms.push(performance.now() - startedAt);
    rows = stream.rowCount;
  }
  return { ms, rows };
}

async function showPlan(client: pg.Client, text: string): Promise<void> {
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS) ${text}`);
  output.note(rows.map((row) => row["QUERY PLAN"]).join("\n"));
}

function describe(lines: readonly Line[]): string {
  return table(
    [
      "question",
      "rows",
      "views ms",
      "slowest",
      "jit on ms",
      "limit",
      "buffers",
      "cost",
      "raw hours ms",
      "raw days ms",
    ],
    lines.map((line) => [
      line.question,
      line.rows,
      line.viewMs.toFixed(0),
      line.slowestMs.toFixed(0),
      line.compiledMs?.toFixed(0) ?? null,
      verdict(line),
      line.buffers,
      Math.round(line.cost),
      line.hoursMs?.toFixed(0) ?? null,
      line.daysMs?.toFixed(0) ?? null,
    ]),
  );
}

function verdict({ limitMs, instead, viewMs, compiledMs = 0 }: Line): string | null {
  if (limitMs === undefined) return instead === undefined ? null : `use ${instead}`;
  return Math.max(viewMs, compiledMs) <= limitMs ? `under ${limitMs}` : `OVER ${limitMs}`;
}

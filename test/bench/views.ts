import { once } from "node:events";
import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { openStore } from "../../src/core/store/db/database.ts";
import { analyzeStale } from "../../src/core/store/db/statistics.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { createOutput, table } from "../../src/terminal/output.ts";
import { resolveTestPostgres } from "../support/test-postgres.ts";
import { median } from "./harness.ts";
import { seedUsage } from "./views-data.ts";
import { QUESTIONS, type Question } from "./views-questions.ts";

/**
 * `npm run bench:views`: how long the views take to respond over three years of hours. Warm, one question at a time, until the last row
 * has come. With 50 million records (`--records 50000000`) it needs 10 GB of disk and ten minutes; `--keep` leaves the database of
 * `DATABASE_URL` for the next run.
 */

interface Options {
  readonly records: number;
  readonly seed: number;
  readonly workspaces?: number;
  readonly years?: number;
  readonly rounds: number;
  readonly only?: string;
  readonly keep?: boolean;
  readonly plans?: boolean;
}

const whole = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError("It is not a whole number.");
  return value;
};
const options = new Command("bench:views")
  .description("questions put to the views")
  .option("--records <n>", "hourly records, about", whole, 1_000_000)
  .option("--seed <n>", "of the made-up usage", whole, 1)
  .option("--workspaces <n>", "so many workspaces, each with a project, a key and users", whole)
  .option("--years <n>", "so many years in place of three; 0.5 is half a year", Number)
  .option("--rounds <n>", "rounds of the views; medians are shown", whole, 7)
  .option("--only <text>", "only questions with that text in their name")
  .option("--keep", "leave the database, and use it where it is there")
  .option("--plans", "print each plan with its buffers")
  .parse()
  .opts<Options>();

interface Line {
  readonly question: Question;
  readonly rows: number;
  readonly ms: readonly number[];
}

const output = createOutput({ json: false });
const service = await resolveTestPostgres();
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
  await client.query("SET TIME ZONE 'UTC'; SET jit = off");
  const { rows } = await client.query(`
    SELECT version() AS version, current_setting('shared_buffers') AS buffers, current_setting('work_mem') AS work_mem,
           count(*)::integer AS records,
           pg_size_pretty(pg_database_size(current_database())) AS size
    FROM usage.hourly_record`);
  const lines: Line[] = [];
  for (const question of QUESTIONS.filter(({ name }) => name.includes(options.only ?? ""))) {
    output.note(question.name);
    if (options.plans === true) await showPlan(client, question.view);
    lines.push({ question, ...(await times(client, question.view)) });
  }
  await client.end();
  const [machine] = rows;
  process.stdout.write(
    `${table(["question", "rows", "ms", "slowest", "limit"], lines.map(lineOf))}\n\n` +
      `${machine.records} hourly records (seed ${options.seed}), ${machine.size}. ${/^\S+ \S+/.exec(machine.version)?.[0]}, shared_buffers ${machine.buffers}, work_mem ${machine.work_mem}, ${availableParallelism()} cores.\n` +
      `Medians of ${options.rounds} warm rounds until the last row.\n`,
  );
} finally {
  if (options.keep !== true) await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await admin.end();
  await service.close();
}

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
    const filled = openStore({ url });
    output.note(`analyzed: ${(await analyzeStale(filled.db)).join(", ")}`);
    await filled.close();
    // Index-only scans need pages that vacuum has seen. Autovacuum comes once an hour to a temporary server; by default every minute.
    for (const table of ["hourly_record", "dated_record"]) await client.query(`VACUUM usage.${table}`);
    output.note("vacuumed, as autovacuum does");
  }
  await client.end();
}

/** Until the last byte has come: what a client makes of it is its own affair. */
async function times(client: pg.Client, text: string): Promise<{ ms: number[]; rows: number }> {
  const ms: number[] = [];
  let rows = 0;
  for (let round = 0; round <= options.rounds; round++) {
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

function lineOf({ question: { name, limitMs, instead }, rows, ms }: Line): (string | number | null)[] {
  const middle = median(ms);
  const verdict =
    limitMs === undefined
      ? instead && `use ${instead}`
      : `${middle <= limitMs ? "under" : "OVER"} ${limitMs}`;
  return [name, rows, middle.toFixed(0), Math.max(...ms).toFixed(0), verdict ?? null];
}

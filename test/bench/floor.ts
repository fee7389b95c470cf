import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { activeDays, dayOf, type Shape, tracesOf, userId } from "./shapes.ts";

/**
 * Two floors, each one transaction: COPY of rows that lie ready as text into a temporary table, then one MERGE into the
 * same table that the loader writes. Neither parses JSON or HTTP, keeps names, coverage or a ledger.
 */
export interface Floor {
  readonly name: "given ids" | "same rows";
  readonly about: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
  writeRows(shape: Shape, file: string): Promise<void>;
}

const MERGE = (rows: string) => `
  MERGE INTO usage.dated_record r USING ${rows} s ON r.series_id = s.series_id AND r.bucket_start = s.bucket_start
  WHEN MATCHED AND r.traces <> s.traces THEN UPDATE SET traces = s.traces
  WHEN NOT MATCHED THEN INSERT (series_id, bucket_start, traces) VALUES (s.series_id, s.bucket_start, s.traces)`;

export const FLOORS: readonly Floor[] = [
  {
    name: "given ids",
    about: "rows as (series id, day, traces), sorted: the work of naming is a gift",
    before: [
      "BEGIN",
      "CREATE TEMPORARY TABLE stage (series_id integer, bucket_start date, traces bigint) ON COMMIT DROP",
    ],
    after: [MERGE("stage"), "COMMIT"],
    writeRows: (shape, file) =>
      writeLines(file, function* () {
        const days = daysOf(shape);
        for (let user = 0; user < shape.usersPerWorkspace; user++) {
          yield days.map(({ day, date }) => `${user + 1}\t${date}\t${tracesOf(user, day)}\n`).join("");
        }
      }),
  },
  {
    name: "same rows",
    about:
      "rows as they are answered (user id, e-mail, day, traces), entered and joined to their series in SQL",
    before: [
      "BEGIN",
      `CREATE TEMPORARY TABLE stage (user_id text, user_email text, bucket_start date, traces bigint) ON COMMIT DROP`,
    ],
    after: [
      "ANALYZE stage",
      `INSERT INTO usage.entity (source_id, dimension, external_id)
       SELECT DISTINCT source_id, 'user', user_id FROM stage, usage.source ON CONFLICT DO NOTHING`,
      `INSERT INTO usage.series (scope_id, entity_id)
       SELECT scope_id, entity_id FROM usage.trace_scope, usage.entity WHERE dimension = 'user' ON CONFLICT DO NOTHING`,
      "ANALYZE usage.entity, usage.series",
      MERGE(`(
        SELECT series_id, bucket_start, traces
        FROM stage JOIN usage.entity ON external_id = user_id AND dimension = 'user' JOIN usage.series USING (entity_id)
      )`),
      "COMMIT",
    ],
    writeRows: (shape, file) =>
      writeLines(file, function* () {
        const users = Array.from({ length: shape.usersPerWorkspace }, (_, user) => user);
        const named = users.map((user) => `${userId(user)}\tuser.${user}@example.com`);
        for (const { day, date } of daysOf(shape)) {
          yield users.map((user) => `${named[user]}\t${date}\t${tracesOf(user, day)}\n`).join("");
        }
      }),
  },
];

/** What the second floor's rows hang off. */
export const FLOOR_SETUP = `
  INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
  VALUES ('floor', 'http://localhost', '2026-01-05', 1, '');
  INSERT INTO usage.entity (source_id, dimension, external_id) SELECT source_id, 'workspace', '1' FROM usage.source;
  INSERT INTO usage.workspace (entity_id) SELECT entity_id FROM usage.entity;
  INSERT INTO usage.scope (source_id, group_by, workspace_id, stride)
  SELECT source_id, 'user', entity_id, 'day' FROM usage.entity`;

/** Milliseconds of the statements: neither starting a client nor connecting counts. */
export type RunFloor = (floor: Floor, databaseUrl: string, file: string) => Promise<number>;

export async function findFloorClient(): Promise<{ name: string; run: RunFloor }> {
  const psql = spawn("psql", ["--version"], { stdio: "ignore" });
  const found = await once(psql, "exit").then(
    ([code]) => code === 0,
    () => false,
  );
  return found ? { name: "psql \\copy", run: runByPsql } : { name: "COPY text from Node", run: byNode };
}

/** `as`: how the file is read, in the words of COPY; default: text. */
export async function runByPsql(
  { before, after }: Pick<Floor, "before" | "after">,
  databaseUrl: string,
  file: string,
  as = "",
): Promise<number> {
  const psql = spawn("psql", ["-X", "-q", "-v", "ON_ERROR_STOP=1"], {
    // A URL on the command line would show the password to everyone.
    env: { ...process.env, ...connectionVariables(databaseUrl) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const script = [
    "\\timing on",
    ...before.map((statement) => `${statement.replaceAll("\n", " ")};`),
    `\\copy stage FROM '${file}' ${as}`,
    ...after.map((statement) => `${statement};`),
    "",
  ];
  psql.stdin.end(script.join("\n"));
  let printed = "";
  psql.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  const [code] = await once(psql, "close");
  const times = [...printed.matchAll(/^Time: ([\d.]+) ms/gm)].map((match) => Number(match[1]));
  if (code !== 0 || times.length !== before.length + 1 + after.length) {
    throw new Error(`psql ended with ${code} after ${times.length} statements: ${printed}`);
  }
  return times.reduce((sum, ms) => sum + ms, 0);
}

const byNode: RunFloor = async ({ before, after }, databaseUrl, file) => {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const startedAt = performance.now();
    for (const statement of before) await client.query(statement);
    await pipeline(
      createReadStream(file, { highWaterMark: 65_536 }),
      client.query(copyFrom("COPY stage FROM STDIN")),
    );
    for (const statement of after) await client.query(statement);
    return performance.now() - startedAt;
  } finally {
    await client.end();
  }
};

export function connectionVariables(databaseUrl: string): Record<string, string> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  return {
    PGHOST: hostname,
    PGPORT: port || "5432",
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
  };
}

function daysOf(shape: Shape): { day: number; date: string }[] {
  return activeDays(shape, 0, shape.days).map((day) => ({
    day,
    date: new Date(dayOf(day)).toISOString().slice(0, 10),
  }));
}

async function writeLines(file: string, pieces: () => Iterable<string>): Promise<void> {
  await pipeline(Readable.from(pieces()), createWriteStream(file));
}

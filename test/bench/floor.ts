import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { activeDays, dayOf, type Shape, tracesOf, userId } from "./shapes.ts";

/**
 * The floor of loads, one transaction: `psql` copies rows as they are answered (user id, e-mail, day, traces) from a text file into a
 * temporary table, enters their users and series, and merges them into the same table that the loader writes. It parses neither
 * JSON nor HTTP, and keeps no names, coverage or ledger.
 */
export const FLOOR: Statements = {
  before: [
    "BEGIN",
    "CREATE TEMPORARY TABLE stage (user_id text, user_email text, bucket_start date, traces bigint) ON COMMIT DROP",
  ],
  after: [
    "ANALYZE stage",
    `INSERT INTO usage.entity (source_id, dimension, external_id)
     SELECT DISTINCT source_id, 'user', user_id FROM stage, usage.source ON CONFLICT DO NOTHING`,
    `INSERT INTO usage.series (scope_id, entity_id)
     SELECT scope_id, entity_id FROM usage.trace_scope, usage.entity WHERE dimension = 'user' ON CONFLICT DO NOTHING`,
    "ANALYZE usage.entity, usage.series",
    `MERGE INTO usage.dated_record r USING (
       SELECT series_id, bucket_start, traces
       FROM stage JOIN usage.entity ON external_id = user_id AND dimension = 'user' JOIN usage.series USING (entity_id)
     ) s ON r.series_id = s.series_id AND r.bucket_start = s.bucket_start
     WHEN MATCHED AND r.traces <> s.traces THEN UPDATE SET traces = s.traces
     WHEN NOT MATCHED THEN INSERT (series_id, bucket_start, traces) VALUES (s.series_id, s.bucket_start, s.traces)`,
    "COMMIT",
  ],
};

/** What the floor's rows hang off. */
export const FLOOR_SETUP = `
  INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
  VALUES ('floor', 'http://localhost', '2026-01-05', 1, '');
  INSERT INTO usage.entity (source_id, dimension, external_id) SELECT source_id, 'workspace', '1' FROM usage.source;
  INSERT INTO usage.workspace (entity_id) SELECT entity_id FROM usage.entity;
  INSERT INTO usage.scope (source_id, group_by, workspace_id, stride)
  SELECT source_id, 'user', entity_id, 'day' FROM usage.entity`;

/** Around a COPY of a file into the table `stage`. */
interface Statements {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** The rows of a shape of one workspace, as text. */
export async function writeRows(shape: Shape, file: string): Promise<void> {
  const users = Array.from({ length: shape.usersPerWorkspace }, (_, user) => user);
  const named = users.map((user) => `${userId(user)}\tuser.${user}@example.com`);
  const pieces = function* () {
    for (const day of activeDays(shape, 0, shape.days)) {
      const date = new Date(dayOf(day)).toISOString().slice(0, 10);
      yield users.map((user) => `${named[user]}\t${date}\t${tracesOf(user, day)}\n`).join("");
    }
  };
  await pipeline(Readable.from(pieces()), createWriteStream(file));
}

/**
 * Milliseconds of the statements: neither starting `psql` nor connecting counts. `as`: how the file is read, in the words of
 * COPY; default: text.
 */
export async function runByPsql(
  { before, after }: Statements,
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

function connectionVariables(databaseUrl: string): Record<string, string> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  return {
    PGHOST: hostname,
    PGPORT: port || "5432",
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
  };
}

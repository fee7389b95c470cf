import type { Client } from "@modelcontextprotocol/client";
import { beforeEach, expect, test } from "vitest";
import type { Store } from "../../../src/core/store/db/database.ts";
import { call, overHttp, refusal, response, rowsOf } from "../../support/mcp.ts";
import { setupPages, TOKENS } from "../../support/pages.ts";
import { connectPlain, setupSource } from "../../support/reporting.ts";

/** What the tool `query` lets a stranger do: read views, and nothing else. */

let bench: { store: Store; url: string; sourceId: number };
let operator: Client;
let viewer: Client;

beforeEach(async () => {
  bench = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const served = { databaseUrl: bench.url, store: bench.store, standin };
  const { url } = await setupPages(served, { environment: TOKENS });
  operator = await overHttp(url, TOKENS.USAGE_WEB_TOKEN);
  viewer = await overHttp(url, TOKENS.USAGE_WEB_READ_TOKEN);
});

/** Sets the role back and then reads a table, in one SELECT. */
const RESET_AND_READ = `WITH reset AS MATERIALIZED (SELECT set_config('role', 'none', true) AS role)
  SELECT query_to_xml('SELECT slug FROM usage.source', true, true, '')::text AS found FROM reset`;

type Refused = readonly (readonly [sql: string, why: RegExp])[];

/** Statements by what they try. */
const REFUSED: Readonly<Record<string, Refused>> = {
  "reads a table": [
    ["SELECT * FROM usage.source", /permission denied for schema usage/],
    [
      "SELECT query_to_xml('SELECT * FROM usage.source', true, true, '')",
      /permission denied for schema usage/,
    ],
    ["SELECT usage.query_as_usage_reader('SELECT 1', 0, 1, 1)", /permission denied for schema usage/],
    ["TABLE usage.source", /permission denied for schema usage/],
    ["SELECT schema_to_xml('usage', true, true, '')", /permission denied/],
    ["SELECT cursor_to_xml('response', 9, true, true, '')", /cannot|active|not exist/],
    ["SELECT rolpassword FROM pg_authid", /permission denied/],
  ],
  "leaves the role": [
    [RESET_AND_READ, /cannot set parameter "role" within security-definer function/],
    ["SELECT set_config('role', 'none', false)", /cannot set parameter "role"/],
    ["SELECT set_config('ROLE', 'none', true)", /cannot set parameter "role"/],
    [
      "SELECT set_config('session_authorization', 'default', true)",
      /cannot set parameter "session_authorization"/,
    ],
    ["SELECT query_to_xml('SET ROLE NONE', true, true, '')", /not allowed in a non-volatile function/],
    ["SELECT query_to_xml('RESET ROLE', true, true, '')", /not allowed in a non-volatile function/],
    ["SET ROLE NONE", /cannot open SET query as cursor/],
    ["RESET ROLE", /cannot open RESET query as cursor/],
    ["SELECT 1; RESET ROLE", /cannot open multi-query plan as cursor/],
    ["SET SESSION AUTHORIZATION DEFAULT", /as cursor/],
    ["SET LOCAL ROLE pg_write_all_data", /as cursor/],
    ["DISCARD ALL", /as cursor/],
    ["COMMIT", /cannot open COMMIT query as cursor/],
    ["SAVEPOINT x", /as cursor/],
    ["PREPARE x AS SELECT 1", /as cursor/],
    ["DECLARE x CURSOR WITH HOLD FOR SELECT 1", /as cursor/],
    ["COMMIT; RESET ROLE; SELECT 1", /cannot open multi-query plan as cursor/],
    ["SELECT 1) AS t; RESET ROLE; SELECT (1", /syntax error/],
  ],
  writes: [
    ["SELECT set_config('transaction_read_only', 'off', false)", /cannot set transaction read-write mode/],
    ["DELETE FROM usage.source RETURNING *", /permission denied/],
    ["WITH gone AS (DELETE FROM usage.source RETURNING *) SELECT * FROM gone", /permission denied/],
    ["SELECT * FROM reporting.dim_workspace FOR UPDATE", /permission denied/],
    ["SELECT * FROM (VALUES (1)) AS one INTO TEMP kept", /syntax error/],
    ["CREATE TEMP TABLE kept AS SELECT 1", /as cursor/],
    [
      "SELECT query_to_xml('CREATE TEMP TABLE kept (x int)', true, true, '')",
      /not allowed in a non-volatile/,
    ],
    ["SELECT lo_create(0)", /read-only transaction/],
    ["SELECT lo_from_bytea(0, 'x')", /read-only transaction/],
    [
      "SELECT nextval(c.oid) FROM pg_class c WHERE relkind = 'S' LIMIT 1",
      /read-only transaction|permission denied/,
    ],
    ["LOCK TABLE reporting.dim_workspace", /as cursor/],
    [
      "MERGE INTO usage.source s USING (SELECT 1) q ON true WHEN MATCHED THEN DELETE",
      /as cursor|permission denied/,
    ],
    ["TRUNCATE usage.source", /as cursor/],
    ["VACUUM", /as cursor/],
    ["NOTIFY news", /as cursor/],
    ["DO $$ BEGIN END $$", /cannot open DO query as cursor/],
  ],
  "reaches files, programs, other servers or processes": [
    ["SELECT pg_read_file('PG_VERSION')", /permission denied for function pg_read_file/],
    ["SELECT pg_ls_dir('.')", /permission denied for function pg_ls_dir/],
    ["SELECT pg_read_binary_file('PG_VERSION')", /permission denied/],
    ["SELECT lo_export(1, '/tmp/x')", /permission denied/],
    ["SELECT pg_reload_conf()", /permission denied/],
    ["SELECT pg_switch_wal()", /permission denied/],
    ["COPY reporting.dim_workspace TO '/tmp/x'", /as cursor/],
    ["SELECT lo_import('/etc/passwd')", /permission denied for function lo_import/],
    ["COPY (SELECT 1) TO PROGRAM 'true'", /cannot open COPY query as cursor/],
    ["SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t (one int)", /password .*required/i],
    [
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      /permission denied to terminate process/,
    ],
  ],
  "is no SELECT": [
    ["EXPLAIN ANALYZE SELECT 1", /EXPLAIN is not allowed in a non-volatile function/],
    ["SHOW server_version", /SHOW is not allowed in a non-volatile function/],
    ["LISTEN news", /cannot open LISTEN query as cursor/],
    ["SELECT $1", /there is no parameter \$1/],
    ["no SQL at all", /syntax error/],
  ],
};

test.each(Object.entries(REFUSED))("a statement that %s is refused", async (_, statements) => {
  const owner = await connectPlain(bench.url);
  await owner.query("CREATE EXTENSION dblink SCHEMA reporting");
  await owner.query(
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA reporting TO usage_reader, usage_reader_masked",
  );
  for (const [sql, why] of statements) {
    for (const client of [operator, viewer]) {
      const said = await refusal(client, "query", { sql });
      expect(said, sql).toMatch(why);
      expect(said, sql).toContain("[query_refused]");
    }
  }
  expect((await owner.query("SELECT slug FROM usage.source")).rows).toEqual([{ slug: "default" }]);
});

test("the statement that sets the role back would read a table if only SET LOCAL ROLE kept it from that", async () => {
  const owner = await connectPlain(bench.url);
  await owner.query("BEGIN READ ONLY; SET LOCAL ROLE usage_reader");
  const { rows } = await owner.query<{ found: string }>(RESET_AND_READ);
  expect(rows[0]?.found).toContain("default");
});

test("each token reads as its role", async () => {
  expect(await rowsOf(operator, "SELECT current_user")).toEqual([{ current_user: "usage_reader" }]);
  expect(await rowsOf(viewer, "SELECT current_user")).toEqual([{ current_user: "usage_reader_masked" }]);
  expect(await rowsOf(operator, "SELECT count(*) AS users FROM dim_user")).toEqual([{ users: 0 }]);
  const sql = "SELECT * FROM reporting_detail.dim_user";
  expect(await refusal(viewer, "query", { sql })).toContain("permission denied for view dim_user");
});

test("a function that belongs to another role runs nothing, and a missing one is named with what to run", async () => {
  const owner = await connectPlain(bench.url);
  await owner.query("ALTER FUNCTION usage.query_as_usage_reader OWNER TO CURRENT_USER");
  expect(await refusal(operator, "query", { sql: "SELECT 1" })).toContain("does not belong to its role");
  await owner.query("DROP FUNCTION usage.query_as_usage_reader");
  const said = await refusal(operator, "query", { sql: "SELECT 1" });
  expect(said).toMatch(/GRANT usage_reader, usage_reader_masked TO .* \[reader_role_missing\]$/);
});

test("rows have every digit, columns may have one name, and instants are UTC", async () => {
  const sql = `SELECT 9007199254740993 AS n, 0.10000000000000000001 AS n, NULL::text AS nothing, '2026-03-01T12:00+02'::timestamptz AS at`;
  expect((await call(operator, "query", { sql })).text).toBe(
    `{"columns":["n","n","nothing","at"],"rows":[[9007199254740993,0.10000000000000000001,null,"2026-03-01T10:00:00+00:00"]],"next_cursor":null,"note":null}`,
  );
  expect(await response(operator, "query", { sql: "SELECT 1 AS one WHERE false -- none" })).toMatchObject({
    columns: [],
    rows: [],
    next_cursor: null,
  });
});

test("a result is cut after 500 rows or 60 kB, and its cursor leads to the rest", async () => {
  const read = async (sql: string, cursor?: unknown) => {
    const { rows, next_cursor, note } = await response(operator, "query", { sql, cursor });
    expect(note === null).toBe(next_cursor === null);
    return [rows.length, rows.at(-1)?.[0]?.length ?? rows.at(-1)?.[0], next_cursor];
  };
  expect(await read("SELECT generate_series(1, 500)")).toEqual([500, 500, null]);
  const thousand = "SELECT generate_series(1, 1001)";
  expect(await read(thousand)).toEqual([500, 500, 500]);
  expect(await read(thousand, 500)).toEqual([500, 1000, 1000]);
  expect(await read(thousand, "1000")).toEqual([1, 1001, null]);
  expect(await read(thousand, 5000)).toEqual([0, undefined, null]);
  expect(await read("SELECT repeat('x', 29000) FROM generate_series(1, 2)")).toEqual([2, 29_000, null]);
  expect(await read("SELECT repeat('x', 29000) FROM generate_series(1, 3)")).toEqual([2, 29_000, 2]);
  expect(await read("SELECT repeat('x', 29000) FROM generate_series(1, 3)", 2)).toEqual([1, 29_000, null]);
  const wide = "SELECT 1 UNION ALL SELECT length(repeat('x', 60000))";
  expect(await read(wide)).toEqual([2, 60_000, null]);
  const sql = "SELECT repeat('x', 60000)";
  expect(await refusal(operator, "query", { sql })).toMatch(
    /Row 1 alone has more than 60000 bytes.*fewer or shorter/,
  );
});

test("a client that shows text only reads all rows of a large result, which is not sent twice", async () => {
  const sql = "SELECT n, repeat('x', 100) FROM generate_series(1, 1500) n";
  const read: number[] = [];
  let pages = 0;
  for (let cursor: number | null = 0; cursor !== null && pages < 20; pages++) {
    const { text, structured } = await call(operator, "query", { sql, cursor });
    const whole = JSON.stringify(structured);
    expect(whole.length).toBeLessThan(60_500);
    expect(text.length).toBeLessThan(24_500);
    const shown = JSON.parse(text);
    read.push(...shown.rows.map(([n]: [number]) => n));
    cursor = shown.next_cursor;
  }
  expect(pages).toBeGreaterThan(5);
  expect(read).toEqual(Array.from({ length: 1500 }, (_, at) => at + 1));
});

test("what no role can be refused is undone with the transaction", async () => {
  const owner = await connectPlain(bench.url);
  const heard: string[] = [];
  owner.on("notification", ({ channel }) => void heard.push(channel));
  await owner.query("LISTEN news");
  await rowsOf(operator, "SELECT pg_notify('news', 'x')::text");
  await rowsOf(
    operator,
    "SELECT set_config('work_mem', '1GB', false), set_config('search_path', 'usage', false)",
  );
  expect(
    await rowsOf(operator, "SELECT current_setting('work_mem') AS m, current_setting('search_path') AS p"),
  ).toEqual([{ m: expect.not.stringContaining("1GB"), p: "reporting, reporting_detail, pg_temp" }]);
  await owner.query("SELECT 1");
  expect(heard).toEqual([]);
});

test("a result without end is cut at once", async () => {
  for (const sql of [
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "SELECT a.* FROM pg_attribute a, pg_attribute b, pg_attribute c",
  ]) {
    const { rows, next_cursor } = await response(operator, "query", { sql });
    expect(rows.length, sql).toBe(next_cursor);
  }
});

test("large sorts, joins and recursions end at the deadline and leave nothing behind", async () => {
  const owner = await connectPlain(bench.url);
  const files = "SELECT count(*) AS files FROM pg_ls_tmpdir()";
  const statements = [
    "SELECT * FROM generate_series(1, 2000000000) n ORDER BY random()",
    "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
  ];
  const refusals = statements.map((sql) => refusal(operator, "query", { sql }));
  for (const said of await Promise.all(refusals)) expect(said).toContain("[postgres_slow]");
  expect((await owner.query(files)).rows).toEqual([{ files: "0" }]);
  const { rows } = await owner.query(
    "SELECT count(*) AS busy FROM pg_stat_activity WHERE application_name = 'usage-etl query'",
  );
  expect(rows).toEqual([{ busy: "0" }]);
}, 40_000);

test("a statement ends at its deadline, whatever it sets, and leaves no lock behind", async () => {
  const sql = "SELECT set_config('statement_timeout', '0', false), pg_advisory_lock(4711), pg_sleep(60)";
  expect(await refusal(operator, "query", { sql })).toContain("[postgres_slow]");
  await rowsOf(operator, "SELECT pg_advisory_lock(4712)::text");
  const owner = await connectPlain(bench.url);
  const locks = "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND objid IN (4711, 4712)";
  expect((await owner.query(locks)).rows).toEqual([]);
}, 20_000);

import { execFile, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pg from "pg";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { openStore } from "../../src/core/store/db/database.ts";
import { listViews, type View } from "../../src/core/store/db/views.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { ALL_DUE } from "../support/by-hand.ts";
import { createPrices } from "../support/charges.ts";
import { createTestDatabase, pastPooler } from "../support/database.ts";
import { addSource, connectPlain, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";
import { jarOf, missing, notFound, notInstalled, venvOf } from "./counterparts.ts";

/** What BI tools are made of: `npm run tools`, and `apt-get install odbc-postgresql unixodbc postgresql-client default-jdk-headless`. */

const run = promisify(execFile);
const [WORKSPACE, OTHER] = WORKSPACES;
/** Counts that a float does not have; their sum is the next one that it would round. */
const BIG = 9_007_199_254_740_993n;
const ZONES = ["Asia/Tokyo", "America/New_York"];

let database: URL;
let views: readonly View[];
let counts = new Map<string, number>();

beforeAll(async () => {
  const { url, drop } = await createTestDatabase();
  const store = openStore({ url });
  await migrate(store);
  const sourceId = await addSource(store, { slug: "default", workspaceIds: WORKSPACES });
  for (const groupBy of GROUPINGS) {
    for (const workspaceId of WORKSPACES) {
      const id = groupBy === "workspace" ? workspaceId : "00000000-0000-4000-8000-00000000000a";
      const load = (window: ReturnType<typeof windowOf>, bucket: string) =>
        loadRows(store, { sourceId, workspaceId, groupBy, window, rows: [[bucket, id, 1, "営業, =1"]] });
      await load(windowOf("day", "2026-03-01", "2026-03-02"), "2026-03-01");
      await load(windowOf("hour", "2026-03-01T00:00Z", "2026-03-01T10:00Z"), "2026-03-01T00:00:00Z");
    }
  }
  await createPrices(store, [{ unitPrice: "99999999.0123456789" }]);
  // By hand, so costs are noted by hand too.
  const hand = new pg.Client({ connectionString: url });
  await hand.connect();
  await hand.query(
    `UPDATE usage.dated_record SET traces = ${BIG}; UPDATE usage.hourly_record SET traces = ${BIG}; ${ALL_DUE}`,
  );
  // As docs/bi.md says. Our test servers hash passwords once, which the driver of JDBC refuses.
  const login = `${inject("runPrefix")}analyst`;
  const password = randomBytes(12).toString("hex");
  await hand.query(`
    SET scram_iterations = 4096; CREATE ROLE ${login} LOGIN PASSWORD '${password}' IN ROLE usage_reader;
    ALTER ROLE ${login} SET default_transaction_read_only = on; ALTER ROLE ${login} SET timezone = 'UTC';
    ALTER ROLE ${login} SET jit = off; ALTER ROLE ${login} SET search_path = reporting, reporting_detail`);
  database = Object.assign(new URL(await pastPooler(url)), { username: login, password });
  views = await listViews(store.db);
  await store.close();
  return async () => {
    await hand.query(`DROP ROLE ${login}`);
    await hand.end();
    await drop();
  };
});

/** What a client counted is what ours counted: before all clients, or now, since with each hour some views have one more row of each workspace. */
async function expectCounts(read: ReadonlyMap<string, number>): Promise<void> {
  const differ = () => [...read].filter(([view, count]) => count !== counts.get(view));
  if (differ().length > 0) counts = await countRows();
  expect(differ()).toEqual([]);
  expect([...read.keys()].sort()).toEqual([...counts.keys()].sort());
}

async function countRows(): Promise<Map<string, number>> {
  const client = new pg.Client({ connectionString: database.href });
  await client.connect();
  const found = new Map(await rowCounts(client, views));
  await client.end();
  return found;
}

async function rowCounts(client: pg.ClientBase, all: readonly View[]): Promise<[string, number][]> {
  const found: [string, number][] = [];
  for (const { name } of all) {
    const { rows } = await client.query(`SELECT count(*)::integer AS count FROM ${inSchema(name)}`);
    found.push([name, rows[0].count]);
  }
  return found;
}

const VALUES = [
  `SELECT usage_date, traces, is_final FROM reporting.fct_usage_workspace_daily
   WHERE workspace_id = '${WORKSPACE}' AND usage_date = '2026-03-01'`,
  `SELECT usage_hour, traces FROM reporting_detail.fct_usage_workspace_hourly
   WHERE workspace_id = '${OTHER}' AND usage_hour = '2026-03-01T00:00Z'`,
  `SELECT sum(traces) AS traces FROM reporting.fct_usage_workspace_daily`,
  `SELECT "x_UsageDate", "ConsumedQuantity", "EffectiveCost" FROM reporting_detail.focus_1_4_cost_and_usage LIMIT 1`,
  "SELECT pg_has_role('usage_reader', 'member')::text AS reads",
];
const COST = (() => {
  const unscaled = (BIG * 999_999_990_123_456_789n).toString();
  return `${unscaled.slice(0, -10)}.${unscaled.slice(-10)}`;
})();
const RESPONSES = [
  ["2026-03-01", String(BIG), "t"],
  ["2026-03-01T00:00:00Z", String(BIG)],
  [String(2n * BIG)],
  ["2026-03-01", `${BIG}.000000`, COST],
  ["true"],
];

const columnNames = () =>
  views.flatMap((view) => view.columns.map(({ name }) => `${view.name}.${name}`)).sort();

describe("JDBC", () => {
  const absent = notFound("java", ["-version"]) ?? notInstalled("postgresql");

  test.for(ZONES)("reads the same values in the zone %s", async (zone, { skip }) => {
    if (absent !== undefined) return skip(absent);
    const url = `jdbc:postgresql://${database.host}${database.pathname}`;
    const program = fileURLToPath(new URL("clients/Jdbc.java", import.meta.url));
    const { stdout } = await run(
      "java",
      [
        "-cp",
        jarOf("postgresql"),
        `-Duser.timezone=${zone}`,
        program,
        url,
        database.username,
        database.password,
        ...VALUES,
      ],
      {
        maxBuffer: 1 << 26,
      },
    );
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => line.split("\t"));
    const of = (kind: string) => lines.filter(([first]) => first === kind).map(([, ...rest]) => rest);
    expect(
      of("view")
        .map(([name]) => name)
        .sort(),
    ).toEqual(views.map(({ name }) => name).sort());
    expect(
      of("column")
        .map(([name]) => name)
        .sort(),
    ).toEqual(columnNames());
    expect([...new Set(of("column").map(([, type]) => type))].sort()).toEqual([
      "BIGINT",
      "BIT",
      "DATE",
      "INTEGER",
      "NUMERIC",
      "TIMESTAMP",
      "VARCHAR",
    ]);
    expect([...of("view"), ...of("column")].filter((line) => line.at(-1) !== "true")).toEqual([]);
    await expectCounts(new Map(of("rows").map(([view = "", count]) => [view, Number(count)])));
    expect(of("value")).toEqual(RESPONSES);
  });
});

describe("ODBC", () => {
  const absent = notFound("isql");
  const driver = absent === undefined ? odbcDriver() : undefined;

  test.for(ZONES)("reads the same values in the zone %s", async (zone, { skip }) => {
    if (driver === undefined) return skip(absent ?? missing("no ODBC driver of Postgres is on this machine"));
    const connection = [
      `DRIVER={${driver}}`,
      `SERVER=${database.hostname}`,
      `PORT=${database.port}`,
      `DATABASE=${database.pathname.slice(1)}`,
      `UID=${database.username}`,
      `PWD=${database.password}`,
      "BoolsAsChar=0",
    ].join(";");
    const isql = async (path: string, statements: readonly string[]) => {
      const settings = `ConnSettings=SET search_path %3D ${path}`;
      const running = run("isql", ["-k", `${connection};${settings}`, "-b", "-c", "-v", "-d\t"], {
        env: { ...process.env, TZ: zone },
        maxBuffer: 1 << 26,
      });
      running.child.stdin?.end(statements.map((one) => `${one.replaceAll(/\s+/g, " ")}\n`).join(""));
      return (await running).stdout
        .trim()
        .split("\n")
        .map((line) => line.split("\t"));
    };
    const described: string[][] = [];
    for (const path of ["reporting", "reporting_detail"]) {
      const ofPath = views.filter(({ schema }) => schema === path).map(({ name }) => `help ${name}`);
      described.push(...(await isql(path, ofPath)));
    }
    const columns = described.filter(([, schema]) => schema?.startsWith("reporting"));
    expect(columns.map(([, , view, name]) => `${view}.${name}`).sort()).toEqual(columnNames());
    const types = new Set(columns.map(([, , , , code, name]) => `${name} ${code}`));
    expect([...types].sort()).toEqual([
      "bool -7",
      "date 9",
      "int4 4",
      "int8 -5",
      "numeric 2",
      "text -1",
      "timestamptz 11",
    ]);
    const read = new Map<string, number>();
    for (const { name } of views) {
      const [, ...rows] = await isql("reporting, reporting_detail", [`SELECT count(*) AS n FROM ${name}`]);
      read.set(name, Number(rows[0]?.[0]));
    }
    await expectCounts(read);
    const responses: string[][] = [];
    for (const query of VALUES) responses.push((await isql("reporting", [query]))[1] ?? []);
    const asOdbc = (cell: string) => (cell === "t" ? "1" : cell.replace("T", " ").replace("Z", ""));
    expect(responses).toEqual(RESPONSES.map((row) => row.map(asOdbc)));
  });
});

describe("psql", () => {
  const absent = notFound("psql");

  test.for(ZONES)("reads the same values in the zone %s", async (zone, { skip }) => {
    if (absent !== undefined) return skip(absent);
    const psql = async (...commands: readonly string[]) => {
      const env = { ...process.env, TZ: zone, PGTZ: zone };
      const args = [database.href, "-X", "-A", "-t", ...commands.flatMap((one) => ["-c", one])];
      return (await run("psql", args, { env, maxBuffer: 1 << 26 })).stdout.trim().split("\n");
    };
    const described = await psql("\\dv+ reporting*.*");
    expect(described).toHaveLength(views.length);
    expect(described.filter((line) => !line.includes("Grain:"))).toEqual([]);
    const read = await psql(
      ...views.map(({ name }) => `SELECT '${name}', count(*) FROM (SELECT * FROM ${inSchema(name)}) v`),
    );
    await expectCounts(new Map(read.map((line) => [line.split("|")[0] ?? "", Number(line.split("|")[1])])));
    const shown = await psql(...VALUES);
    const cells = shown.map((line) => line.split("|")).map((row) => row.map(toInstant));
    expect(cells).toEqual(RESPONSES);
  });
});

function toInstant(cell: string): string {
  const isInstant = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d$/.test(cell);
  return isInstant
    ? new Date(cell.replace(" ", "T").concat(":00")).toISOString().replace(".000Z", "Z")
    : cell;
}

describe("a driver of Node, in a process of the zone", () => {
  const require = createRequire(import.meta.url);
  async function inZone<T>(zone: string, program: string, driver: string): Promise<T> {
    const connection = {
      host: database.hostname,
      port: Number(database.port),
      database: database.pathname.slice(1),
      user: database.username,
      password: database.password,
    };
    const given = JSON.stringify({
      driver,
      connection,
      views: views.map(({ schema, name }) => `${schema}.${name}`),
      queries: VALUES,
    });
    const { stdout } = await run(process.execPath, ["-e", program, given], {
      env: { ...process.env, TZ: zone },
      maxBuffer: 1 << 26,
    });
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as T;
  }
  const LOCAL_DAY = `const day = (d) => [d.getFullYear(), d.getMonth() + 1, d.getDate()].map((n) => String(n).padStart(2, "0")).join("-");`;

  test.for(ZONES)("pg reads the same values in the zone %s", async (zone) => {
    const program = `
      const { driver, connection, views, queries } = JSON.parse(process.argv[1]);
      const pg = require(driver);
      ${LOCAL_DAY}
      (async () => {
        const client = new pg.Client(connection);
        await client.connect();
        const counts = [], responses = [];
        for (const view of views) counts.push([view.split(".")[1], (await client.query("SELECT * FROM " + view)).rowCount]);
        for (const query of queries) {
          const { rows, fields } = await client.query(query);
          responses.push(fields.map(({ name, dataTypeID }) => {
            const value = rows[0][name];
            if (dataTypeID === 1082) return day(value);
            return value instanceof Date ? value.toISOString().replace(".000Z", "Z") : typeof value === "boolean" ? (value ? "t" : "f") : value;
          }));
        }
        console.log(JSON.stringify({ counts, responses }));
        await client.end();
      })();`;
    const said = await inZone<{ counts: [string, number][]; responses: unknown }>(
      zone,
      program,
      require.resolve("pg"),
    );
    await expectCounts(new Map(said.counts));
    expect(said.responses).toEqual(RESPONSES);
  });

  test.for(ZONES)("that of Evidence reads the same values in the zone %s", async (zone) => {
    const driver = require.resolve("@evidence-dev/postgres");
    const program = `
      const { driver, connection, views, queries } = JSON.parse(process.argv[1]);
      const runQuery = require(driver);
      ${LOCAL_DAY}
      (async () => {
        const read = async (query) => {
          const { rows, columnTypes } = await runQuery(query, connection, 1000);
          const all = [];
          if (typeof rows === "function") for await (const batch of rows()) all.push(...batch); else all.push(...rows);
          return { all, columnTypes };
        };
        const columns = [], counts = [];
        for (const view of views) {
          const { all, columnTypes } = await read("SELECT * FROM " + view);
          columns.push(...columnTypes.map(({ typeFidelity, evidenceType }) => typeFidelity + " " + evidenceType));
          counts.push([view.split(".")[1], all.length]);
        }
        const { all } = await read(queries[0].replace("traces", "traces::text AS traces"));
        console.log(JSON.stringify({ columns: [...new Set(columns)], counts, day: day(all[0].usage_date), traces: all[0].traces }));
        process.exit(0);
      })();`;
    const said = await inZone<{ columns: string[]; counts: [string, number][]; day: string; traces: string }>(
      zone,
      program,
      driver,
    );
    expect(said.columns.filter((column) => !column.startsWith("precise"))).toEqual([]);
    await expectCounts(new Map(said.counts));
    // It reads whole numbers as floats: big ones have to be cast, as docs/bi.md says.
    expect([said.day, said.traces]).toEqual(["2026-03-01", String(BIG)]);
  });
});

describe("Python", () => {
  const absent = notInstalled("readers");
  const python = (args: readonly string[], input: string) => {
    const running = run(join(venvOf("readers"), "bin/python"), args, { maxBuffer: 1 << 26 });
    running.child.stdin?.end(input);
    return running;
  };

  test.for(["psycopg", "sqlalchemy", "asyncpg", "adbc-driver-postgresql", "pyodbc", "polars"])(
    "%s reads every view whole, and no value as a float",
    async (library, { skip }) => {
      const driver = library === "pyodbc" ? odbcDriver() : "";
      const why =
        absent ??
        (driver === undefined ? missing("no ODBC driver of Postgres is on this machine") : undefined);
      if (why !== undefined) return skip(why);
      const program = fileURLToPath(new URL("clients/readers.py", import.meta.url));
      const names = views.map(({ schema, name }) => `${schema}.${name}`);
      const { hostname, port, pathname, username, password, href } = database;
      const odbc = `DRIVER={${driver}};SERVER=${hostname};PORT=${port};DATABASE=${pathname.slice(1)};UID=${username};PWD=${password};BoolsAsChar=0`;
      const given = { url: href, views: names, queries: VALUES, odbc };
      const { stdout } = await python([program, library], JSON.stringify(given));
      const { counts: read, responses } = JSON.parse(stdout);
      expect(responses).toEqual(RESPONSES);
      await expectCounts(new Map(read));
    },
  );

  test("the programs of docs/bi.md give the sum of Postgres, with all digits", async ({ skip }) => {
    if (absent !== undefined) return skip(absent);
    const page = readFileSync(new URL("../../docs/bi.md", import.meta.url), "utf8");
    const programs = [...page.matchAll(/```python\n(.*?)```/gs)].map(([, text = ""]) =>
      text.replaceAll(/postgresql(\+\w+)?:\/\/[^"]*/g, (_, driver = "") =>
        database.href.replace("postgresql:", `postgresql${driver}:`),
      ),
    );
    expect(programs.length).toBe(2);
    const client = await connectPlain(database.href);
    const { rows } = await client.query(
      "SELECT sum(estimated_cost) AS sum FROM reporting.fct_cost_workspace_daily WHERE currency = 'USD'",
    );
    for (const program of programs) {
      const { stdout } = await python(["-"], program);
      expect(new Set(stdout.trim().split("\n"))).toEqual(new Set([rows[0].sum]));
    }
  });
});

function odbcDriver(): string | undefined {
  const { stdout: installed } = spawnSync("odbcinst", ["-q", "-d"], { encoding: "utf8" });
  return /^\[(PostgreSQL.*Unicode.*|psqlodbcw?)\]$/im.exec(installed ?? "")?.[1];
}

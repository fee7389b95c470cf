import { createReadStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { parse } from "csv-parse/sync";
import { from as copyFrom } from "pg-copy-streams";
import { expect, test } from "vitest";
import { usageEtl } from "../support/cli.ts";
import { breachesOf, factsOf } from "../support/focus.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { temporaryFolder } from "../support/temporary.ts";
import { COST, close, fill, loadDay, setup } from "./focus/bench.ts";

const [WORKSPACE] = WORKSPACES;

test("an exported CSV file has the formats of FOCUS, and read back it has the rows of the view", async () => {
  const bench = await setup();
  await fill(bench);
  await close(bench, 0);
  await loadDay(bench, "2026-03-01", WORKSPACE, 3, "=before");
  const out = join(temporaryFolder(), "charges.csv");
  const said = await usageEtl(["export", "--view", "focus_1_4_cost_and_usage", "--out", out], {
    DATABASE_URL: bench.url,
  });
  expect(said.code, said.stderr).toBe(0);

  const [header = [], ...rows] = parse(readFileSync(out)) as string[][];
  const texts = header.map((name) => `"${name}" text`);
  await bench.owner.query(`CREATE TEMP TABLE raw (${texts.join(", ")})`);
  await pipeline(
    createReadStream(out),
    bench.owner.query(copyFrom("COPY raw FROM STDIN (FORMAT csv, HEADER)")),
  );
  const { rows: columns } = await bench.owner.query<{ name: string; type: string }>(
    `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
     WHERE attrelid = '${COST.table}'::regclass AND attnum > 0 ORDER BY attnum`,
  );
  expect(columns.map(({ name }) => name)).toEqual(header);
  const json = factsOf("CostAndUsage").flatMap(({ column, type }) => (type === "JSON" ? [column] : []));
  const wrong = columns.map(({ name, type }) => {
    const format = json.includes(name) ? JSON_OBJECT : (FORMATS[type] as string);
    return `count(*) FILTER (WHERE "${name}" !~ '${format}')::integer AS "${name}"`;
  });
  const { rows: counts } = await bench.owner.query(`SELECT count(*) AS rows, ${wrong.join(", ")} FROM raw`);
  expect(Object.entries(counts[0]).filter(([, count]) => count !== "0" && count !== 0)).toEqual([
    ["rows", String(rows.length)],
  ]);
  const typed = columns.map(({ name, type }) => `"${name}"::${type} AS "${name}"`);
  await bench.owner.query(`CREATE TEMP TABLE read AS SELECT ${typed.join(", ")} FROM raw`);
  const everything = factsOf("CostAndUsage").map(({ column }) => column);
  expect(await breachesOf(bench.owner, { ...COST, table: "pg_temp.read", expected: everything })).toEqual([]);
  const { rows: same } = await bench.owner.query(
    `SELECT count(*) AS rows FROM (TABLE pg_temp.read EXCEPT ALL TABLE ${COST.table}) t`,
  );
  expect([rows.length > 5, same]).toEqual([true, [{ rows: "0" }]]);
});

const FORMATS: Readonly<Record<string, string>> = {
  "timestamp with time zone": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$",
  numeric: "^-?\\d+(\\.\\d+)?$",
  date: "^\\d{4}-\\d\\d-\\d\\d$",
  boolean: "^(true|false)$",
  text: "^.",
};
const JSON_OBJECT = "^\\{.*\\}$";

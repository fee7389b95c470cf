import { createReadStream, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { parse } from "csv-parse/sync";
import { parquetMetadata } from "hyparquet";
import { from as copyFrom } from "pg-copy-streams";
import { describe, expect, test } from "vitest";
import { usageEtl } from "../support/cli.ts";
import { breachesOf, factsOf } from "../support/focus.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { temporaryFolder } from "../support/temporary.ts";
import { type Bench, COST, close, fill, loadDay, setup } from "./focus/bench.ts";

const [WORKSPACE] = WORKSPACES;

describe("an exported file", () => {
  async function exported(bench: Bench, view: string, format: string) {
    const folder = temporaryFolder();
    const out = join(folder, `charges.${format}`);
    const said = await usageEtl(["export", "--view", view, "--format", format, "--out", out], {
      DATABASE_URL: bench.url,
    });
    expect(said.code, said.stderr).toBe(0);
    return { out, files: (await readdir(folder)).sort() };
  }

  test("breaks nothing when it is read back, and its metadata describe it", async () => {
    const bench = await setup();
    await fill(bench);
    await close(bench, 0);
    await loadDay(bench, "2026-03-01", WORKSPACE, 3, "before");
    const { out, files } = await exported(bench, "focus_1_4_cost_and_usage", "csv");
    const metadata = JSON.parse(readFileSync(`${out}.metadata.json`, "utf8"));
    expect(files).toEqual(["charges.csv", "charges.csv.metadata.json"]);
    const [schema] = metadata.Schema;
    const definitions: { ColumnName: string; DataType: string; NumericPrecision?: number }[] =
      schema.ColumnDefinition;
    expect(metadata).toMatchObject({
      DataGenerator: { DataGenerator: "usage-etl" },
      DatasetInstance: [{ DatasetInstanceName: "focus_1_4_cost_and_usage", FocusDatasetId: "CostAndUsage" }],
      Schema: [{ FocusVersion: "1.4", DataGeneratorVersion: expect.stringMatching(/^\d+\.\d+\.\d+$/) }],
    });
    expect(schema.SchemaId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(schema.CreationDate).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

    // Read by the metadata alone, as the text of the file and then as its types.
    const [header, ...rows] = parse(readFileSync(out)) as string[][];
    expect(definitions.map(({ ColumnName }) => ColumnName)).toEqual(header);
    const quoted = definitions.map(({ ColumnName }) => `"${ColumnName}"`);
    await bench.owner.query(`CREATE TEMP TABLE raw (${quoted.map((name) => `${name} text`).join(", ")})`);
    await pipeline(
      createReadStream(out),
      bench.owner.query(copyFrom("COPY raw FROM STDIN (FORMAT csv, HEADER)")),
    );
    const wrong = definitions.map(
      ({ ColumnName: name, DataType: type }) =>
        `count(*) FILTER (WHERE "${name}" !~ '${FORMATS[type]}')::integer AS "${name}"`,
    );
    const { rows: counts } = await bench.owner.query(`SELECT count(*) AS rows, ${wrong.join(", ")} FROM raw`);
    expect(Object.entries(counts[0]).filter(([, count]) => count !== "0")).toEqual([
      ["rows", String(rows.length)],
    ]);
    const typed = definitions.map(
      ({ ColumnName: name, DataType: type }) => `"${name}"::${TYPES[type]} AS "${name}"`,
    );
    await bench.owner.query(`CREATE TEMP TABLE read AS SELECT ${typed.join(", ")} FROM raw`);
    const everything = factsOf("CostAndUsage").map(({ column }) => column);
    expect(await breachesOf(bench.owner, { ...COST, table: "pg_temp.read", expected: everything })).toEqual(
      [],
    );
    const { rows: same } = await bench.owner.query(
      `SELECT count(*) AS rows FROM (TABLE pg_temp.read EXCEPT ALL TABLE ${COST.table}) t`,
    );
    expect([rows.length > 5, same]).toEqual([true, [{ rows: "0" }]]);
  });

  test("holds its metadata itself as Parquet, and stays alone", async () => {
    const bench = await setup();
    await fill(bench);
    const { out, files } = await exported(bench, "focus_1_4_cost_and_usage", "parquet");
    expect(files).toEqual(["charges.parquet"]);
    const bytes = readFileSync(out);
    const { key_value_metadata: pairs = [], schema } = parquetMetadata(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
    );
    const facts = Object.fromEntries(pairs.map(({ key, value }) => [key, value ?? ""]));
    expect(facts).toMatchObject({
      FocusVersion: "1.4",
      FocusDatasetId: "CostAndUsage",
      DataGenerator: "usage-etl",
    });
    const names = schema.slice(1).map(({ name }) => name);
    const columns = (text = "[]") =>
      JSON.parse(text).map(({ ColumnName }: { ColumnName: string }) => ColumnName);
    expect(columns(facts.ColumnDefinition)).toEqual(names);
    expect(JSON.parse(facts.FocusMetadata ?? "").Schema[0]).toMatchObject({ SchemaId: facts.SchemaId });
  });
});

/** How each type of the metadata is written in CSV, and what reads it. */
const FORMATS: Readonly<Record<string, string>> = {
  DATETIME: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$",
  DECIMAL: "^-?\\d+(\\.\\d+)?$",
  DATE: "^\\d{4}-\\d\\d-\\d\\d$",
  BOOLEAN: "^(true|false)$",
  JSON: "^\\{.*\\}$",
  STRING: "^[^=+@-]",
};
const TYPES: Readonly<Record<string, string>> = {
  DATETIME: "timestamptz",
  DECIMAL: "numeric",
  DATE: "date",
  BOOLEAN: "boolean",
  JSON: "text",
  STRING: "text",
};

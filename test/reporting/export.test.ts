import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { type FileMetaData, parquetMetadata, parquetReadObjects } from "hyparquet";
import { describe, expect, onTestFinished, test } from "vitest";
import { listViews } from "../../src/store/export/views.ts";
import { connectPlain, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";
import { BIG, DAY, HOSTILE, NEXT, RANGE, setup, UNBOUNDED, WORKSPACE } from "./export-setup.ts";

describe("formats", () => {
  test("CSV tells null from empty, guards formulas, and keeps numbers and days unchanged", async () => {
    const { run } = await setup();
    const { code, stdout, stderr } = await run("--view", "fct_usage_workspace_daily", ...RANGE);
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^4 rows of fct_usage_workspace_daily in [\d.]+ s\.\n$/),
    ]);
    const [header, ...rows] = parse(stdout, { relax_column_count: false }) as string[][];
    // Others are appended.
    expect(header?.slice(0, 8)).toEqual([
      ...[
        "source_id",
        "usage_date",
        "workspace_id",
        "workspace_name",
        "traces",
        "is_final",
        "coverage_status",
      ],
      "fetched_at",
    ]);
    expect(rows.map((row) => row.slice(1, 7))).toEqual([
      ["2026-03-01", WORKSPACE, `'${HOSTILE}`, String(BIG), "true", "ok"],
      ["2026-03-01", WORKSPACES[1], "", "", "false", "missing"],
      ["2026-03-02", WORKSPACE, `'${HOSTILE}`, "7", "true", "ok"],
      ["2026-03-02", WORKSPACES[1], "", "", "false", "missing"],
    ]);
    expect(rows[0]?.[7]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    const project = await run(
      "--view",
      "reporting.fct_usage_project_daily",
      "--columns",
      "project_name, traces",
      ...RANGE,
    );
    expect(project.stdout).toBe("project_name,traces\n'-1+2,3\n,\n,\n,\n");
  });

  test("every format tells no id from an id that is spelled (none)", async () => {
    const { store, sourceId, run } = await setup();
    await loadRows(store, {
      ...{ sourceId, workspaceId: WORKSPACE, groupBy: "user", window: windowOf("day", DAY, NEXT) },
      rows: [
        [DAY, "", 3],
        [DAY, "(none)", 5],
      ],
    });
    const view = [
      "--view",
      "fct_usage_user_daily",
      "--from",
      DAY,
      "--to",
      NEXT,
      "--columns",
      "user_id,traces",
    ];
    const lines = async (...format: string[]) => (await run(...view, ...format)).stdout.split("\n").sort();
    expect(await lines()).toEqual(["", "(none),3", ",", "\\(none),5", "user_id,traces"]);
    expect(await lines("--format", "json")).toEqual([
      "",
      '{"user_id":"(none)","traces":3}',
      '{"user_id":"\\\\(none)","traces":5}',
      '{"user_id":null,"traces":null}',
    ]);
  });

  test("CSV guards a minus in a text and keeps it in a number", async () => {
    const { url, run } = await setup();
    const owner = await connectPlain(url);
    await owner.query(`
      CREATE VIEW reporting.signs AS
      SELECT (-5)::bigint AS whole, (-0.5)::numeric(38, 10) AS exact, -1e50::numeric AS unbounded, '-5'::text AS words, ''::text AS empty, NULL::text AS nothing`);
    expect((await run("--view", "signs")).stdout).toBe(
      `whole,exact,unbounded,words,empty,nothing\n-5,-0.5000000000,${UNBOUNDED},'-5,"",\n`,
    );
    const parquet = join(tmpdir(), `signs-${process.pid}.parquet`);
    onTestFinished(() => rm(parquet, { force: true }));
    await run("--view", "signs", "--format", "parquet", "--out", parquet);
    const { rows } = await readExactly(await readFile(parquet));
    expect(rows).toEqual([
      { whole: "-5", exact: "-0.5000000000", unbounded: UNBOUNDED, words: "-5", empty: "", nothing: null },
    ]);
  });

  test("JSON Lines keep all digits of whole numbers and write decimals as texts", async () => {
    const { run } = await setup();
    const columns = "x_UsageDate,ConsumedQuantity,BilledCost,x_IsFinal,InvoiceId,ChargePeriodStart";
    const costs = await run("--view", "focus_1_4_cost_and_usage", "--format", "json", "--columns", columns);
    expect(costs.stdout.split("\n").map((line) => (line === "" ? line : JSON.parse(line)))).toEqual([
      {
        ...{
          x_UsageDate: "2026-03-01",
          ConsumedQuantity: "9007199254740991.000000",
          BilledCost: "2702159.7764222973",
        },
        ...{ x_IsFinal: true, InvoiceId: null, ChargePeriodStart: "2026-03-01T00:00:00Z" },
      },
      {
        ...{ x_UsageDate: "2026-03-02", ConsumedQuantity: "7.000000", BilledCost: "0.0000000021" },
        ...{ x_IsFinal: true, InvoiceId: null, ChargePeriodStart: "2026-03-02T00:00:00Z" },
      },
      "",
    ]);
    const traces = await run(
      "--view",
      "fct_usage_workspace_daily",
      "--format",
      "json",
      "--columns",
      "traces",
      ...RANGE,
    );
    expect(traces.stdout.split("\n")[0]).toBe(`{"traces":${BIG}}`);
  });

  test("Parquet holds every view, each column in its own type and each value as in Postgres", async () => {
    const { store, url, folder, run } = await setup();
    const plain = await connectPlain(url);
    for (const view of await listViews(store.db)) {
      // What every type needs is in these; the others would only take time.
      if (!["fct_usage_workspace_daily", "focus_1_4_cost_and_usage", "data_freshness"].includes(view.name))
        continue;
      const out = join(folder, `${view.name}.parquet`);
      const said = await run("--view", view.name, "--format", "parquet", "--out", out, "--json");
      expect(said.code, said.stderr).toBe(0);
      const bytes = await readFile(out);
      const names = view.columns.map(({ name }) => `"${name}"`);
      const expected = await plain.query(`SELECT ${names.join(", ")} FROM ${inSchema(view.name)}`);
      expect(JSON.parse(said.stdout)).toMatchObject({
        rows: expected.rowCount,
        bytes: bytes.length,
        file: out,
      });
      const { metadata, rows } = await readExactly(bytes);
      expect(
        metadata.schema.slice(1).map(({ name, logical_type }) => `${name} ${logical_type?.type ?? ""}`),
      ).toEqual(view.columns.map(({ name, type }) => `${name} ${LOGICAL[type] ?? ""}`));
      const lines = (all: readonly Record<string, unknown>[]) => all.map((row) => JSON.stringify(row)).sort();
      expect(lines(rows).map(withoutLag)).toEqual(lines(expected.rows).map(withoutLag));
    }
  });
});

/** Seconds since the last fetch go on counting between two looks. */
const withoutLag = (line: string) => line.replace(/"lag_seconds":"\d+"/, "");
const LOGICAL: Record<string, string> = {
  text: "STRING",
  date: "DATE",
  numeric: "DECIMAL",
  "timestamp with time zone": "TIMESTAMP",
};

/** Rows of a Parquet file as the texts of Postgres, with decimals read from their bytes: the reader makes floats of them. */
async function readExactly(
  file: Buffer,
): Promise<{ metadata: FileMetaData; rows: Record<string, unknown>[] }> {
  const buffer = file.buffer.slice(file.byteOffset, file.byteOffset + file.length) as ArrayBuffer;
  const metadata = parquetMetadata(buffer);
  const scales = new Map<string, number>();
  const bare = parquetMetadata(buffer);
  for (const element of bare.schema) {
    if (element.converted_type !== "DECIMAL") continue;
    scales.set(element.name, element.scale ?? 0);
    delete element.converted_type;
    delete element.logical_type;
  }
  const raw = await parquetReadObjects({
    file: buffer,
    metadata: bare,
    utf8: false,
    parsers: {
      timestampFromMicroseconds: (micros: bigint) => {
        const text = new Date(Number(micros / 1000n)).toISOString().slice(0, 19).replace("T", " ");
        const fraction = (micros % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "");
        return `${text}${fraction === "" ? "" : `.${fraction}`}+00`;
      },
      dateFromDays: (days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10),
    } as never,
  });
  const toText = (name: string, value: unknown): unknown => {
    const scale = scales.get(name);
    if (value === null || value === undefined) return null;
    if (scale !== undefined) return decimalOf(value as Uint8Array, scale);
    if (typeof value === "boolean") return value ? "t" : "f";
    return String(value);
  };
  const rows = raw.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toText(name, value)])),
  );
  return { metadata, rows };
}

function decimalOf(bytes: Uint8Array, scale: number): string {
  const unscaled = BigInt.asIntN(bytes.length * 8, BigInt(`0x${Buffer.from(bytes).toString("hex")}`));
  const sign = unscaled < 0n ? "-" : "";
  const digits = unscaled
    .toString()
    .replace("-", "")
    .padStart(scale + 1, "0");
  return scale === 0 ? `${sign}${digits}` : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

describe("the requested range", () => {
  test("an end inside a bucket is widened outwards", async () => {
    const { run } = await setup();
    const days = async (from: string, to: string) => {
      const args = ["--view", "dim_date", "--columns", "usage_date", "--from", from, "--to", to];
      return (await run(...args)).stdout.trim().split("\n").slice(1);
    };
    expect(await days("2026-03-02T10:00", "2026-03-03T00:01")).toEqual(["2026-03-02", "2026-03-03"]);
    expect(await days("2026-03-02", "2026-03-03")).toEqual(["2026-03-02"]);
    const periods = ["--view", "focus_1_4_billing_period", "--columns", "x_BillingMonth"];
    const { stdout: months } = await run(...periods, "--from", "2026-04-01", "--to", "2026-06-01");
    expect(months.trim().split("\n")).toEqual(["x_BillingMonth", "2026-04-01", "2026-05-01"]);
    const hour = Math.floor(Date.now() / 3_600_000 - 20) * 3_600_000;
    const at = (minutes: number) => new Date(hour + minutes * 60_000).toISOString();
    const range = ["--from", at(30), "--to", at(90)];
    const { stdout } = await run("--view", "fct_usage_workspace_hourly", "--columns", "usage_hour", ...range);
    expect(new Set(stdout.trim().split("\n").slice(1))).toEqual(
      new Set([at(0), at(60)].map((one) => one.replace(".000", ""))),
    );
  });

  test("a range without data gives a file with a header, exit code 0 and a note", async () => {
    const { folder, run } = await setup();
    const range = ["--columns", "usage_date,month_start", "--from", "2020-01-01", "--to", "2020-02-01"];
    for (const format of ["csv", "json", "parquet"]) {
      const out = join(folder, `empty.${format}`);
      const { code, stderr } = await run("--view", "dim_date", "--format", format, "--out", out, ...range);
      expect([code, stderr]).toEqual([0, expect.stringContaining("There are no rows in that range")]);
    }
    expect(await readFile(join(folder, "empty.csv"), "utf8")).toBe("usage_date,month_start\n");
    expect(await readFile(join(folder, "empty.json"), "utf8")).toBe("");
    const { metadata, rows } = await readExactly(await readFile(join(folder, "empty.parquet")));
    expect([metadata.num_rows, rows.length, metadata.schema.length]).toEqual([0n, 0, 3]);
  });

  test.each([
    [
      ["--view", "fct_usage_workspace_dayly"],
      "is not a view. Did you mean fct_usage_workspace_daily?\n  Names that are spelled like it: fct_usage_workspace_daily,",
    ],
    [["--view", "usage.source"], '"usage.source" is not a view'],
    [
      ["--view", "dim_user", "--columns", "user_id,user_mail"],
      '"user_mail" is not a column of dim_user. Did you mean user_email?',
    ],
    [["--view", "dim_user", "--columns", "user_id,user_id"], '"user_id" is named twice'],
    [["--view", "dim_user", "--from", "2026-03-01"], "dim_user has no time column"],
    [["--view", "dim_date", "--from", "2026-03-02", "--to", "2026-03-01"], "is not before --to"],
    [["--view", "dim_date", "--from", "yesterday"], "It is not a day or instant"],
    [["--view", "dim_date", "--out", "/nowhere/x.csv"], "/nowhere/x.csv cannot be written"],
    [["--view", "dim_date", "--out", tmpdir()], "it is a directory"],
  ])("%j is refused: %s", async (args, message) => {
    const { run } = await setup();
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
  });
});

import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FileMetaData, parquetMetadata, parquetReadObjects } from "hyparquet";
import { describe, expect, test } from "vitest";
import { now } from "../support/clock.ts";
import { connectPlain } from "../support/reporting.ts";
import { setup } from "./export-setup.ts";

describe("formats", () => {
  test("Parquet holds numbers below zero and beyond a decimal, and tells null from empty", async () => {
    const { url, folder, run } = await setup();
    const owner = await connectPlain(url);
    await owner.query(`
      CREATE VIEW reporting.signs AS
      SELECT (-5)::bigint AS whole, (-0.5)::numeric(38, 10) AS exact, -1e50::numeric AS unbounded, '-5'::text AS words, ''::text AS empty, NULL::text AS nothing`);
    const parquet = join(folder, "signs.parquet");
    await run("--view", "signs", "--format", "parquet", "--out", parquet);
    const { rows } = await readExactly(await readFile(parquet));
    expect(rows).toEqual([
      {
        whole: "-5",
        exact: "-0.5000000000",
        unbounded: `-1${"0".repeat(50)}`,
        words: "-5",
        empty: "",
        nothing: null,
      },
    ]);
  });
});

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
    const hour = Math.floor(now() / 3_600_000 - 20) * 3_600_000;
    const at = (minutes: number) => new Date(hour + minutes * 60_000).toISOString();
    const range = ["--from", at(30), "--to", at(90)];
    const { stdout } = await run("--view", "fct_usage_workspace_hourly", "--columns", "usage_hour", ...range);
    expect(new Set(stdout.trim().split("\n").slice(1))).toEqual(
      new Set([at(0), at(60)].map((one) => one.replace(".000", ""))),
    );
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

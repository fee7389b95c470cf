import { expect, test } from "vitest";
import { usageEtl } from "../support/cli.ts";
import { connectPlain } from "../support/reporting.ts";
import { setupMigrated } from "../support/store.ts";

/** Texts that CSV, JSON or a spreadsheet could misread, with their cell in CSV and in JSON Lines. */
const TEXTS: readonly (readonly [text: string | null, csv: string, json: string])[] = [
  [null, "", "null"],
  ["", '""', '""'],
  [" ", " ", '" "'],
  ["plain", "plain", '"plain"'],
  ["a,b", '"a,b"', '"a,b"'],
  ['say "hi"', '"say ""hi"""', '"say \\"hi\\""'],
  ['"', '""""', '"\\""'],
  ["two\nlines", '"two\nlines"', '"two\\nlines"'],
  ["two\r\nlines", '"two\r\nlines"', '"two\\r\\nlines"'],
  ["a\rb", '"a\rb"', '"a\\rb"'],
  ["\n", '"\n"', '"\\n"'],
  ["a\tb", "a\tb", '"a\\tb"'],
  ["=1+1", "'=1+1", '"=1+1"'],
  ["+1", "'+1", '"+1"'],
  ["-1", "'-1", '"-1"'],
  ["-", "'-", '"-"'],
  ["@SUM(A1)", "'@SUM(A1)", '"@SUM(A1)"'],
  ["\tx", "'\tx", '"\\tx"'],
  ["\rx", '"\'\rx"', '"\\rx"'],
  ["\nx", '"\nx"', '"\\nx"'],
  ["＝1", "'＝1", '"＝1"'],
  ["＋1", "'＋1", '"＋1"'],
  ["－1", "'－1", '"－1"'],
  ["＠1", "'＠1", '"＠1"'],
  ['=A1,"b"\n', '"\'=A1,""b""\n"', '"=A1,\\"b\\"\\n"'],
  ["'=1", "'=1", '"\'=1"'],
  ["\\N", "\\N", '"\\\\N"'],
  ["\\.", "\\.", '"\\\\."'],
  ["\\(none)", "\\(none)", '"\\\\(none)"'],
  ["NULL", "NULL", '"NULL"'],
  [
    "\u0001\u0002\u0008\u000b\u000c\u001f\u007f",
    "\u0001\u0002\u0008\u000b\u000c\u001f\u007f",
    '"\\u0001\\u0002\\b\\u000b\\f\\u001f\u007f"',
  ],
  [
    "営業 🧾 é \u2028\u2029\u00a0\ufeff",
    "営業 🧾 é \u2028\u2029\u00a0\ufeff",
    '"営業 🧾 é \u2028\u2029\u00a0\ufeff"',
  ],
  ["</script>", "</script>", '"</script>"'],
];
const REST = [
  ["-5::bigint", "-5", "-5"],
  ["9223372036854775807", "9223372036854775807", "9223372036854775807"],
  ["-7::integer", "-7", "-7"],
  ["-0.5::numeric(38,10)", "-0.5000000000", '"-0.5000000000"'],
  ["-1e50::numeric", `-1${"0".repeat(50)}`, `"-1${"0".repeat(50)}"`],
  ["NULL::bigint", "", "null"],
  ["true", "true", "true"],
  ["false", "false", "false"],
  ["NULL::boolean", "", "null"],
  ["date '2026-03-01'", "2026-03-01", '"2026-03-01"'],
  ["timestamptz '2026-03-01 05:00:00+05:30'", "2026-02-28T23:30:00Z", '"2026-02-28T23:30:00Z"'],
  [
    "timestamptz '2026-03-01 05:00:00.1234560Z'",
    "2026-03-01T05:00:00.123456Z",
    '"2026-03-01T05:00:00.123456Z"',
  ],
  ["timestamptz '2026-03-01 05:00:00.12Z'", "2026-03-01T05:00:00.12Z", '"2026-03-01T05:00:00.12Z"'],
  ["NULL::timestamptz", "", "null"],
] as const;

test("every value stays the same in CSV and JSON, whatever it holds", async () => {
  const { url } = await setupMigrated();
  const owner = await connectPlain(url);
  const literal = (text: string | null) =>
    text === null ? "NULL::text" : `${owner.escapeLiteral(text)}::text`;
  const rest = REST.map(([expression], at) => `${expression} AS "r,${at}"`).join(", ");
  const rows = TEXTS.map(([text], at) => `(${at}, ${literal(text)})`).join(", ");
  await owner.query(`
    CREATE VIEW reporting.hostile AS
    SELECT number AS period_start, word, word AS "Again ""quoted""", ${rest} FROM (VALUES ${rows}) v (number, word)`);
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await usageEtl(["export", "--view", "reporting.hostile", ...args], {
      DATABASE_URL: url,
    });
    const said = new RegExp(`^${TEXTS.length} rows of hostile in [\\d.]+ s\\.\\n$`);
    expect([code, stderr]).toEqual([0, expect.stringMatching(said)]);
    return stdout;
  };
  const names = ["period_start", "word", 'Again "quoted"', ...REST.map((_, at) => `r,${at}`)];
  const quoted = names.map((name) => (/[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name));
  const lines = TEXTS.map(([, cell], at) => [at, cell, cell, ...REST.map(([, csv]) => csv)].join(","));
  expect(await run()).toBe(`${[quoted.join(","), ...lines].join("\n")}\n`);
  const objects = TEXTS.map(([, , cell], at) => {
    const cells = [at, cell, cell, ...REST.map(([, , json]) => json)];
    return `{${names.map((name, i) => `${JSON.stringify(name)}:${cells[i]}`).join(",")}}`;
  });
  expect(await run("--format", "json")).toBe(`${objects.join("\n")}\n`);
  expect(await run("--columns", "word, period_start")).toMatch(/^word,period_start\n,0\n"",1\n/);
});

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openPlace } from "../../src/features/export/place.ts";
import { writeFiles } from "../../src/features/export/write-files.ts";
import { QUESTIONS as OF_THE_BENCH } from "../bench/views-questions.ts";
import { QUESTIONS } from "../support/questions.ts";
import { setupQuestions } from "../support/questions-month.ts";
import { connectPlain } from "../support/reporting.ts";
import { share } from "../support/share.ts";
import { temporaryFolder } from "../support/temporary.ts";
import { manifestOf, signal } from "./files.ts";
import { ALL_ENGINES, DATA_FRAMES, type Rows, readViews, withEngine } from "./warehouse.ts";

/** What people and BI tools also ask. An engine may read a view twice for it, and must read the same days both times. */
const OTHERS = [
  `SELECT owner, currency, sum(estimated_cost) AS total_cost,
          round(100 * sum(estimated_cost) / sum(sum(estimated_cost)) OVER (PARTITION BY currency), 1) AS percent
   FROM reporting.fct_cost_owner_daily
   WHERE usage_date >= '2026-10-01' AND usage_date < '2026-11-01' GROUP BY owner, currency`,
  `SELECT usage_date, workspace_name, traces, max(traces) OVER (PARTITION BY workspace_id) AS most
   FROM reporting.fct_usage_workspace_daily WHERE usage_date IN ('2026-10-04', '2026-10-20')`,
  `SELECT this.workspace_id, sum(this.traces) AS this_day, sum(other.traces) AS a_week_before
   FROM reporting.fct_usage_workspace_daily this
   JOIN reporting.fct_usage_workspace_daily other ON other.workspace_id = this.workspace_id AND other.usage_date = '2026-10-08'
   WHERE this.usage_date = '2026-10-15' GROUP BY this.workspace_id`,
];

const asked = share(async () => {
  const { bench, inMonth } = await setupQuestions();
  const { store, databaseUrl: url } = bench;
  const folder = temporaryFolder();
  const place = await openPlace(folder, { signal });
  await writeFiles({ store, signal, source: "default", release: "test", place, views: [] });
  const manifest = await manifestOf(place);
  const isAnswered = (query: string) =>
    [...query.matchAll(/reporting(?:_detail)?\.(\w+)/g)].every(([, view = ""]) => view in manifest.datasets);
  const guide = await readFile(new URL("../../docs/files.md", import.meta.url), "utf8");
  const [, left = ""] =
    /all questions of \[BI\]\(bi\.md#twenty-questions\) but ([\d, and]+)/.exec(guide) ?? [];
  const leftOut = [...QUESTIONS].flatMap(([number, query]) => (isAnswered(query) ? [] : String(number)));
  expect(left.match(/\d+/g)).toEqual(leftOut);
  const requested = [...QUESTIONS.values(), ...OTHERS]
    .map(inMonth)
    .concat(OF_THE_BENCH.map(({ view }) => view))
    .filter(isAnswered)
    .map((query) => query.trim().replace(/;$/, ""));
  const client = await connectPlain(url);
  const responses: { query: string; columns: string[]; rows: Rows }[] = [];
  for (const query of requested) {
    const { fields, rows } = await client.query<(string | null)[]>({
      text: query,
      rowMode: "array",
      types: { getTypeParser: () => (value: string) => value },
    });
    responses.push({ query, columns: fields.map(({ name }) => name), rows });
  }
  return { url, folder, manifest, responses };
});

test.each(ALL_ENGINES)(
  "what people ask of the views has the same response in $name, row by row",
  async (engine) => {
    const { url, folder, manifest, responses } = asked();
    await withEngine(engine, url, { folder, manifest }, async (run) => {
      for (const { query, columns: names, rows: expected } of responses) {
        const { columns, rows } = await run(query);
        const kept = names.flatMap((name, at) =>
          /SELECT \*/.test(query) && !columns.includes(name) ? [] : at,
        );
        expect(rows.map(plain).sort(), query).toEqual(
          expected.map((row) => plain(kept.map((at) => row[at] ?? null))).sort(),
        );
      }
    });
    const answered = responses.filter(({ rows }) => rows.length > 0).length;
    expect(responses.length).toBeGreaterThan(25);
    expect(answered).toBeGreaterThan(20);
  },
);

test.each(DATA_FRAMES)(
  "$name reads the files of every view as Postgres has them, in the order that they say",
  async (engine) => {
    const { url, folder, manifest } = asked();
    const expected = await readViews(url, manifest);
    const { run, close } = await engine.open();
    let rowsRead = 0;
    for (const [view, { columns, files, sorted_by }] of Object.entries(manifest.datasets)) {
      const found = await run(
        JSON.stringify({ paths: files.map(({ path }) => join(folder, path)), sorted_by }),
      );
      expect(found.columns, view).toEqual(columns.map(({ name }) => name));
      expect(found.rows.map(plain).sort(), view).toEqual((expected.get(view) ?? []).map(plain).sort());
      rowsRead += found.rows.length;
      const years = Map.groupBy(files, ({ month }) => month?.slice(0, 4));
      expect(Math.max(...[...years.values()].map((one) => one.length)), view).toBeLessThanOrEqual(12);
    }
    await close();
    expect(rowsRead).toBeGreaterThan(1000);
  },
);

function plain(row: readonly (string | null)[]): string {
  return row
    .map((value) => {
      if (value === null) return "";
      if (/^(t|f|true|false)$/i.test(value)) return value.slice(0, 1).toLowerCase();
      const [, instant, micros = ""] =
        /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d*[1-9])?\.?0*(?:\+00(?::00)?)?$/.exec(value) ?? [];
      if (instant !== undefined) return `${instant}${micros}`;
      return /^-?\d+(\.\d+)?$/.test(value) ? String(Number(value)) : value;
    })
    .join(" | ");
}

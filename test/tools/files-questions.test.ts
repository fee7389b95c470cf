import { expect, test } from "vitest";
import { QUESTIONS as OF_THE_BENCH } from "../bench/views-questions.ts";
import { now } from "../support/clock.ts";
import { QUESTIONS } from "../support/questions.ts";
import { connectPlain, WORKSPACES } from "../support/reporting.ts";
import { FIRST, manifestOf, PROJECTS, SECOND, setupFiles } from "./files.ts";
import { startClickHouse, withClickHouse, withDuckDb } from "./warehouse.ts";

/** Days of the questions, and those that have usage here. */
const TOMORROW = new Date(now() + 86_400_000).toISOString().slice(0, 10);
const DAYS: Readonly<Record<string, string>> = {
  "2026-09-01": FIRST,
  "2026-10-01": FIRST,
  "2026-10-08": FIRST,
  "2026-10-15": SECOND,
  "2026-10-22": TOMORROW,
  "2026-11-01": TOMORROW,
};
/** Files leave out when something was proved. */
const NOT_IN_FILES = /proved_at/;

const clickHouse = startClickHouse();
const ENGINES = [
  { engine: "DuckDB", withEngine: withDuckDb },
  ...(clickHouse === undefined
    ? []
    : [{ engine: "ClickHouse", withEngine: withClickHouse.bind(undefined, clickHouse) }]),
];

test.each(ENGINES)(
  "what people ask of the views has the same response in $engine, row by row",
  async ({ withEngine }) => {
    const { url, folder, place, write, load } = await setupFiles();
    await load("workspace", FIRST, [[WORKSPACES[0], 12]]);
    await load("workspace", SECOND, [[WORKSPACES[1] as string, 30]], 1);
    await load("project", FIRST, [
      [PROJECTS[0] as string, 7],
      [PROJECTS[1] as string, 5],
    ]);
    await load("project", SECOND, [[PROJECTS[2] as string, 29]], 1);
    await write({ views: [] });
    const manifest = await manifestOf(place);
    const requested = [...OF_THE_BENCH.map(({ view }) => view), ...QUESTIONS.values()]
      .map((query) =>
        query
          .trim()
          .replace(/\d{4}-\d\d-\d\d/g, (day) => DAYS[day] ?? day)
          .replace(/;$/, ""),
      )
      .filter((query) => {
        const read = [...query.matchAll(/reporting(?:_detail)?\.(\w+)/g)].map(([, view]) => view ?? "");
        return (
          read.length > 0 && read.every((view) => view in manifest.datasets) && !NOT_IN_FILES.test(query)
        );
      });
    const client = await connectPlain(url);
    const responses: number[] = [];
    await withEngine(url, { folder, manifest }, async (run) => {
      for (const query of requested) {
        const { columns, rows } = await run(query);
        const { fields, rows: expected } = await client.query<(string | null)[]>({
          text: query,
          rowMode: "array",
          types: { getTypeParser: () => (text: string) => text },
        });
        // Of SELECT *, the columns that files have.
        const kept = fields.flatMap(({ name }, at) =>
          /SELECT \*/.test(query) && !columns.includes(name) ? [] : at,
        );
        expect(rows.map(plain).sort(), query).toEqual(
          expected.map((row) => plain(kept.map((at) => row[at] ?? null))).sort(),
        );
        responses.push(rows.length);
      }
    });
    expect(responses.length).toBeGreaterThan(20);
    expect(responses.filter((rows) => rows > 0).length).toBeGreaterThan(15);
  },
);

/** A row as a text, whatever digits, instants and truth are written as. */
function plain(row: readonly (string | null)[]): string {
  return row
    .map((value) => {
      if (value === null) return "";
      if (value === "t" || value === "f") return value === "t" ? "true" : "false";
      return /^-?\d+(\.\d+)?$/.test(value) ? String(Number(value)) : value;
    })
    .join(" | ");
}

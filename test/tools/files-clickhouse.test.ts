import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { openPlace } from "../../src/warehouse/place.ts";
import { connectPlain } from "../support/reporting.ts";
import { FIRST, PROJECTS, SECOND, setupFiles, signal, startBucketServer } from "./files.ts";

/** ClickHouse within a process (npm's `chdb`, half a gigabyte): where it is installed. See CONTRIBUTING.md. */
const CHDB = process.env.CHDB_MODULE;

interface Chdb {
  queryAsync(sql: string, options: { format: string }): Promise<{ text(): string }>;
}

test.skipIf(CHDB === undefined)(
  "ClickHouse reads a set in a bucket by the query of the documents",
  async () => {
    const { url: databaseUrl, write, load } = await setupFiles();
    const { url } = await startBucketServer();
    const place = await openPlace("s3://usage/warehouse", { signal });
    const [one, two] = PROJECTS as [string, string];
    await load("project", FIRST, [[one, 7]]);
    await load("project", SECOND, [
      [one, 5],
      [two, 6],
    ]);
    await write({ place });
    // The file of the first day stays beside the one that replaces it.
    await load("project", FIRST, [[one, 9]]);
    expect(await write({ place })).toMatchObject({ removed: 0 });

    const page = await readFile("docs/warehouse.md", "utf8");
    const query = /## ClickHouse\n.*?```sql\n(.*?)```/s.exec(page)?.[1] ?? "";
    expect(query).toContain("https://bucket.s3.amazonaws.com/prefix");
    const here = query
      .replaceAll("https://bucket.s3.amazonaws.com/prefix", `${url}/usage/warehouse`)
      .replaceAll("'bucket/prefix/'", "'usage/warehouse/'")
      .replace(/', '(Parquet|JSONAsString)'/g, "', 'S3RVER', 'S3RVER', '$1'");
    const { queryAsync } = createRequire(import.meta.url)(CHDB as string) as Chdb;
    const answer = (await queryAsync(here.replace(/;\s*$/, ""), { format: "TSV" })).text();

    const client = await connectPlain(databaseUrl);
    const { rows } = await client.query<string[]>({
      text: "SELECT usage_date::text, coalesce(sum(traces)::text, '\\N') FROM reporting.fct_usage_project_daily GROUP BY 1 ORDER BY 1",
      rowMode: "array",
    });
    expect(answer.trimEnd().split("\n")).toEqual(rows.map((row) => row.join("\t")));
    expect(answer).toContain(`${FIRST}\t9\n${SECOND}\t11\n`);
  },
);

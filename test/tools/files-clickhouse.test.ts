import { expect, onTestFinished, test } from "vitest";
import { openPlace } from "../../src/warehouse/place.ts";
import { usageEtl } from "../support/cli.ts";
import { connectPlain } from "../support/reporting.ts";
import { FIRST, PROJECTS, SECOND, setupFiles, signal, startBucketServer } from "./files.ts";
import { startClickHouse } from "./warehouse.ts";

const clickHouse = startClickHouse();

test.skipIf(clickHouse === undefined)(
  "ClickHouse reads a set in a bucket by the views that the command makes",
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

    const made = await usageEtl(["files", "views", "clickhouse", "--to", place.address], {
      ...{ DATABASE_URL: databaseUrl, AWS_ENDPOINT_URL_S3: url, AWS_REGION: "us-east-1" },
      ...{ AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" },
    });
    expect(made.stdout).toContain("'s3://usage/warehouse/manifest/");
    const here = made.stdout
      .replaceAll("s3://usage/warehouse", `${url}/usage/warehouse`)
      .replace(/', '(Parquet|JSONAsString)'/g, "', 'S3RVER', 'S3RVER', '$1'");
    onTestFinished(() => clickHouse?.cleanup());
    for (const statement of here.split(/;\n/).filter((text) => text.trim() !== "")) {
      await clickHouse?.queryAsync(statement);
    }
    const asked = await clickHouse?.queryAsync(
      "SELECT usage_date, sum(traces) FROM reporting.fct_usage_project_daily GROUP BY 1 ORDER BY 1",
      { format: "TSV" },
    );
    const answer = asked?.text();

    const client = await connectPlain(databaseUrl);
    const { rows } = await client.query<string[]>({
      text: "SELECT usage_date::text, coalesce(sum(traces)::text, '\\N') FROM reporting.fct_usage_project_daily GROUP BY 1 ORDER BY 1",
      rowMode: "array",
    });
    expect(answer?.trimEnd().split("\n")).toEqual(rows.map((row) => row.join("\t")));
    expect(answer).toContain(`${FIRST}\t9\n${SECOND}\t11\n`);
  },
);

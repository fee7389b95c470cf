import { expect, onTestFinished, test } from "vitest";
import { openPlace } from "../../src/features/export/place.ts";
import { usageEtl } from "../support/cli.ts";
import { connectPlain } from "../support/reporting.ts";
import { startBucketServer } from "./bucket-server.ts";
import { FIRST, PROJECTS, SECOND, setupFiles, signal } from "./files.ts";
import { CLICKHOUSE, fillClickHouse } from "./warehouse.ts";

test("ClickHouse fills its views from a set in a bucket, and again from the newest one", async () => {
  const { url: databaseUrl, write, load } = await setupFiles();
  const { url, environment } = await startBucketServer();
  const place = await openPlace("s3://usage/warehouse", { signal });
  const [one, two] = PROJECTS as [string, string];
  await load("project", FIRST, [[one, 7]]);
  await load("project", SECOND, [
    [one, 5],
    [two, 6],
  ]);
  await write({ place });
  await load("project", FIRST, [[one, 9]]);
  expect(await write({ place })).toMatchObject({ removed: 0 });

  const made = await usageEtl(["files", "views", "clickhouse", "--to", place.address], {
    DATABASE_URL: databaseUrl,
    ...environment,
  });
  expect(made.stdout).toContain("'s3://usage/warehouse/manifest/");
  const here = made.stdout
    .replaceAll("s3://usage/warehouse", `${url}/usage/warehouse`)
    .replace(
      /', '(Parquet|JSONAsString)'/g,
      `', '${environment.AWS_ACCESS_KEY_ID}', '${environment.AWS_SECRET_ACCESS_KEY}', '$1'`,
    );
  const { run, close } = await CLICKHOUSE.open();
  onTestFinished(close);
  await fillClickHouse(run, here);
  const client = await connectPlain(databaseUrl);
  const days = async () => {
    const query = "SELECT usage_date::text, sum(traces) FROM reporting.fct_usage_project_daily";
    const { rows: found } = await run(`${query} GROUP BY 1 ORDER BY 1`);
    const { rows } = await client.query<string[]>({
      text: `${query} GROUP BY 1 ORDER BY 1`,
      rowMode: "array",
    });
    return { found, expected: rows, loaded: found.filter(([, sum]) => sum !== null) };
  };
  const first = await days();
  expect(first.found).toEqual(first.expected);
  expect(first.loaded).toEqual([
    [FIRST, "9"],
    [SECOND, "11"],
  ]);

  await load("project", SECOND, [[one, 20]]);
  await write({ place });
  expect(await days()).toMatchObject({ found: first.found });
  for (const view of ["reporting_detail.usage_etl_file", "reporting.fct_usage_project_daily"]) {
    await run(`SYSTEM REFRESH VIEW ${view}`);
    await run(`SYSTEM WAIT VIEW ${view}`);
  }
  const second = await days();
  expect(second.found).toEqual(second.expected);
  expect(second.loaded).toEqual([
    [FIRST, "9"],
    [SECOND, "20"],
  ]);
});

import { expect, test } from "vitest";
import { openStore } from "../../src/core/store/db/database.ts";
import { forgetSource } from "../../src/features/catalog/forget.store.ts";
import { openPlace, type Place } from "../../src/features/export/place.ts";
import { usageEtl } from "../support/cli.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { startBucketServer } from "./bucket-server.ts";
import { FIRST, setupFiles, signal } from "./files.ts";

const VIEWS = ["fct_usage_workspace_daily", "dim_workspace"];

async function setup(place?: Place) {
  const made = await setupFiles();
  await made.load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  await made.write({ views: VIEWS, ...(place && { place }) });
  return made;
}

test("forgetting a source removes its files and its manifest, and leaves those of other sources", async () => {
  const { environment } = await startBucketServer();
  const bucket = await openPlace("s3://usage/warehouse", { signal });
  const { url } = await setup(bucket);
  const others = ["manifest/defaults.json", `dim_workspace/defaults/${"0".repeat(32)}.parquet`, "notes.txt"];
  for (const name of others) {
    const file = await bucket.create(name);
    await file.commit();
  }
  const before = (await bucket.list("")).size;
  const run = (args: string[]) =>
    usageEtl(args, { DATABASE_URL: url, USAGE_EXPORT_DIR: bucket.address, ...environment });
  const dry = await run(["source", "forget", "default", "--dry-run"]);
  expect(dry.stdout).toMatch(new RegExp(`Also: ${before - others.length} files in s3://usage/warehouse`));
  expect((await run(["source", "forget", "default"])).stderr).toContain("records_kept");
  expect((await bucket.list("")).size).toBe(before);
  const forgotten = await run(["source", "forget", "default", "--with-records"]);
  expect([forgotten.code, forgotten.stdout]).toEqual([
    0,
    expect.stringContaining(`Removed: ${before - others.length} files in s3://usage/warehouse`),
  ]);
  expect([...(await bucket.list("")).keys()].sort()).toEqual(others.toSorted());
});

test("check and views name a source that the database does not know, and forgetting it again removes its files", async () => {
  const { url, folder, place } = await setup();
  const files = (await place.list("")).size;
  const store = openStore({ url });
  const by = { name: "ada", role: "operator", via: "command" } as const;
  await forgetSource(store, { sourceId: 1, slug: "default", withRecords: true, dryRun: false, by });
  await store.close();
  const run = (args: string[]) => usageEtl(args, { DATABASE_URL: url, USAGE_EXPORT_DIR: folder });
  const named = `default: ${files} files of a source that the database does not know`;
  expect(await run(["files", "check"])).toMatchObject({ code: 4, stdout: expect.stringContaining(named) });
  expect((await run(["files", "views", "duckdb"])).stderr).toContain(named);
  const other = await setupFiles();
  await other.load("workspace", FIRST, [[WORKSPACES[0], 9]]);
  const elsewhere = { DATABASE_URL: url, USAGE_EXPORT_DIR: other.folder };
  await other.write({ views: VIEWS });
  const kept = (await other.place.list("")).size;
  expect((await usageEtl(["source", "forget", "default"], elsewhere)).stderr).toContain("source_unknown");
  expect((await other.place.list("")).size).toBe(kept);

  expect(await run(["source", "forget", "default"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`Removed: ${files} files in ${folder}`),
  });
  expect([...(await place.list("")).keys()]).toEqual([]);
  expect((await run(["source", "forget", "default"])).stderr).toContain("source_unknown");
});

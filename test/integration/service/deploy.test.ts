import { expect, test } from "vitest";
import { usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { nextRelease } from "../../support/release.ts";
import { daysAgo, logOf, request, setupService } from "../../support/service.ts";

const NEXT = {
  migration: "9999_next_release",
  sql: `ALTER TABLE usage.fetch_task ADD COLUMN note text;
    ALTER TABLE usage.coverage ADD COLUMN note text NOT NULL DEFAULT 'none';
    CREATE TABLE usage.next_release (id integer PRIMARY KEY);
    SELECT pg_sleep(2);`,
  views: "CREATE OR REPLACE VIEW reporting.next_release AS SELECT id FROM usage.next_release;",
};

const VIEWS = `
  SELECT json_object_agg(c.relname, json_build_array(c.oid, c.relacl::text, (
    SELECT array_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
  )) ORDER BY c.relname)::text
  FROM pg_class c
  WHERE c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) AND c.relkind = 'v' AND c.relname <> 'next_release'`;

test("this release goes on loading while the next one migrates, both run on the newer schema, and views stay", async () => {
  const bench = await setupService({ days: 30, workspaces: 2, environment: { USAGE_SYNC_EVERY: "PT10S" } });
  const release = nextRelease(NEXT);
  await bench.value(`CREATE VIEW public.of_a_customer AS SELECT * FROM reporting.fct_usage_workspace_daily`);
  const views = await bench.value(VIEWS);
  const previous = await bench.serve({ environment: { USAGE_RATE_LIMIT: "100" } });

  const early = await usageEtl(["serve"], bench.environment, { release });
  expect(early.code).toBe(2);
  expect(early.stderr).toContain("schema_outdated");
  expect(early.stderr).toContain(NEXT.migration);

  await bench.createBackfill("--from", daysAgo(28), "--to", daysAgo(4), "--stride", "hour");
  const done = () => bench.count("SELECT count(*) FROM usage.fetch_task WHERE state = 'done'");
  await poll(async () => (await done()) > 20, { deadlineMs: 60_000, everyMs: 50 });
  const migrated = await usageEtl(["migrate", "--json"], bench.environment, { release });
  expect(migrated.code).toBe(0);
  expect(JSON.parse(migrated.stdout)).toMatchObject({ applied: [NEXT.migration], newer: [] });
  expect(await bench.value(VIEWS)).toBe(views);
  const before = await done();
  const left = "SELECT count(*) FROM usage.fetch_task WHERE state IN ('waiting', 'queued')";
  expect(await bench.count(left)).toBeGreaterThan(0);

  await bench.serve();
  await bench.serve({ release });
  await poll(async () => (await bench.value("SELECT state FROM usage.backfill")) === "done", {
    deadlineMs: 180_000,
    everyMs: 100,
  });
  expect(await done()).toBeGreaterThan(before);
  await bench.loaded();
  expect(await bench.value("SELECT count(*) FROM usage.failure")).toBe(0);
  expect(await bench.count("SELECT count(*) FROM public.of_a_customer WHERE is_final")).toBeGreaterThan(0);
  expect(logOf(previous).filter((line) => line.msg === "job failed")).toEqual([]);
  expect(await (await request(previous, "/readyz")).json()).toMatchObject({ ok: true });

  const back = await usageEtl(["migrate", "--json"], bench.environment);
  expect(back.code).toBe(0);
  expect(JSON.parse(back.stdout)).toEqual({ applied: [], newer: [NEXT.migration], missingRoles: [] });
  expect(await bench.value("SELECT count(*) FROM reporting.next_release")).toBe(0);
  expect(await bench.value(VIEWS)).toBe(views);
});

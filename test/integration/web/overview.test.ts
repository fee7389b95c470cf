import { expect, test } from "vitest";
import { setupPages } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

test("the overview says what is trusted, and what to do now with the command for it", async () => {
  const bench = await setup();
  const pages = await setupPages(bench);
  expect((await pages.get("/")).text).toMatch(
    /is not contacted yet, so nothing of it is loaded\. Its first sync/,
  );
  await bench.sync();
  const loaded = await pages.get("/");
  expect(loaded.text).toMatch(/Final until \S+, nothing of it is proved yet/);
  await bench.reconcile();
  expect((await pages.get("/")).text).toMatch(/Final and proved until \d{4}-\d\d-\d\d/);
  await bench.sql(`
    DELETE FROM usage.coverage
    WHERE scope_id = (SELECT min(scope_id) FROM usage.trace_scope WHERE stride = 'day') AND period_start = (SELECT min(period_start) FROM usage.coverage)`);
  const gap = await pages.get("/");
  const [, command = ""] = /<code>([^<]*backfill --from [^<]*)<\/code>/.exec(gap.text) ?? [];
  expect(command).toContain(`--from ${new Date(bench.dataStart).toISOString().slice(0, 10)}`);
});

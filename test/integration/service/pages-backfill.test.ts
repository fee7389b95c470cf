import { expect, test } from "vitest";
import { listActions } from "../../support/actions.ts";
import { setupPages, startBackfill } from "../../support/pages.ts";
import { poll } from "../../support/poll.ts";
import { daysAgo, setupService } from "../../support/service.ts";

/** A backfill from its form to its end, with a service that works on it. */

test("a gap is previewed, started and loaded by a worker, and its page says what the tables say", async () => {
  const bench = await setupService({ days: 4, workspaces: 1, environment: { USAGE_SYNC_EVERY: "PT10M" } });
  const environment = Object.fromEntries(
    Object.entries(bench.environment).filter(
      ([name]) => !["DATABASE_URL", "USAGE_BASE_URL", "USAGE_API_KEY", "HTTP_PORT"].includes(name),
    ),
  );
  const pages = await setupPages(bench, { environment });
  await bench.serve();
  await bench.loaded();
  await bench.store.transaction(({ client }) =>
    client.query(`DELETE FROM usage.dated_record;
      DELETE FROM usage.coverage c USING usage.trace_scope s WHERE s.scope_id = c.scope_id AND s.stride = 'day'`),
  );
  const path = `/backfills/new?source=default&from=${daysAgo(4)}&to=${daysAgo(3)}`;
  const preview = await pages.get(path);
  expect(preview.status).toBe(200);
  expect(preview.text).toMatch(
    /Requests<\/dt><dd><span class="number">4<\/span> in <span class="number">1<\/span> windows/,
  );
  expect(preview.text).toContain(`backfill --from ${daysAgo(4)} --to ${daysAgo(3)}`);
  const started = await startBackfill(pages, path);
  expect([started.status, started.headers.location]).toEqual([303, "/backfills/1"]);
  const isOver = async () => (await pages.get("/backfills/1")).text.includes("Finished:");
  await poll(isOver, { deadlineMs: 60_000, everyMs: 200 });
  const page = await pages.get("/backfills/1");
  expect(page.text).toContain("All of it is loaded: by day 4 ");
  expect(page.text).not.toMatch(/<button[^>]*formaction/);
  expect((await pages.get("/backfills")).text).toMatch(/<a href="\/backfills\/1">1<\/a>[\s\S]*done/);
  expect(await listActions(bench.store.db, { most: 9 })).toMatchObject([
    { action: "backfill.start", via: "page" },
  ]);
});

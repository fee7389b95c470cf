import { expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { openStore } from "../../../src/core/store/db/database.ts";
import { setupPages } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

/**
 * Pages that read by several statements show one instant, whatever commits between any two of them, and send fewer than
 * twenty statements, whatever they hold.
 */

/** Undone by itself when it is done again, so that one database serves all pages. Each page shows some of it. */
const CHANGE = `
  UPDATE usage.coverage SET final = NOT final;
  UPDATE usage.dated_record SET traces = 1000000 - traces;
  UPDATE usage.monthly_total SET traces = 1000000 - traces;
  UPDATE usage.entity_name SET name = reverse(name);
  UPDATE usage.run SET failed = 1 - failed;
  UPDATE usage.difference SET stored_traces = 1000000 - stored_traces;`;

test("overview, coverage, cell, months and usage show one instant, and they and previews of backfills need few statements", async () => {
  const bench = await setup({ days: 33, workspaces: [1] });
  await bench.fetch({
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.today } }],
    reprocess: "missing",
  });
  await bench.reconcile();
  const month = new Date(bench.today - 31 * DAY_MS).toISOString().slice(0, 7);
  const day = (ago: number) => new Date(bench.today - ago * DAY_MS).toISOString().slice(0, 10);

  const reader = openStore({ url: bench.databaseUrl, maxConnections: 4 });
  let results = 0;
  let changeAfter = 0;
  const db = reader.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      results += 1;
      if (results === changeAfter) await bench.sql(CHANGE);
      return result;
    },
  });
  const pages = await setupPages(bench, { services: { reader: db } });
  const show = async (path: string, nth: number) => {
    [results, changeAfter] = [0, nth];
    const { status, text } = await pages.get(path);
    expect(status, `${path}: ${text}`).toBe(200);
    // A file is shown whole.
    const [, main = path.startsWith("/usage.csv") ? text : ""] = /<h1>(.*)<\/main>/s.exec(text) ?? [];
    // When it was read, and the form's own secret.
    return main
      .replace(/<p class="as-of".*?<\/p>/, "")
      .replaceAll(/name="(_csrf|shown_at)" value="[^"]*"/g, "");
  };

  for (const path of [
    "/",
    "/coverage",
    `/coverage?stride=day&group_by=project&workspace=${bench.workspaceIds[0]}&from=${day(20)}&to=${day(5)}`,
    `/cell?group_by=project&workspace=${bench.workspaceIds[0]}&stride=day&from=${day(10)}&to=${day(9)}`,
    "/months",
    `/months/${month}`,
    "/usage?by=project",
    "/owners",
    "/usage.csv?by=project",
  ]) {
    // What is read anew only when something is loaded is read now.
    await show(path, 0);
    const before = await show(path, 0);
    const statements = results;
    // Beside the transaction's begin and end.
    expect(statements, path).toBeLessThan(30);
    await bench.sql(CHANGE);
    const after = await show(path, 0);
    expect(after, path).not.toBe(before);
    await bench.sql(CHANGE);
    // The first ones read the clock and what the header offers. A change before the snapshot is in all figures.
    let nth = 2;
    while (nth < 8 && (await show(path, nth)) === after) {
      await bench.sql(CHANGE);
      nth++;
    }
    await bench.sql(CHANGE);
    for (; nth < statements; nth++) {
      expect(await show(path, nth), `${path}, after statement ${nth}`).toBe(before);
      await bench.sql(CHANGE);
    }
    expect(await show(path, 0), path).toBe(before);
  }
  // A plan has a digest in place of a snapshot.
  await bench.sql("DELETE FROM usage.coverage WHERE scope_id % 2 = 0");
  await show(`/backfills/new?from=${day(30)}&to=${day(0)}&stride=day`, 0);
  expect(results).toBeLessThan(14);
  await reader.close();
});

import { expect, test } from "vitest";
import { questionOf, USAGE_QUERY } from "../../../src/service/web/figures/question.ts";
import { type Report, reportOf } from "../../../src/service/web/figures/report.ts";
import type { Store } from "../../../src/store/db/database.ts";
import { inSnapshot } from "../../../src/store/db/snapshot.ts";
import { usageSources } from "../../../src/store/figures/sources.ts";
import { setup } from "../../support/source.ts";

/** A load that commits after any statement of the page changes nothing of what that page shows. */

/** The store's database, in which `then` runs after the `nth` statement, on a connection of its own. */
function interrupted(store: Store, nth: number, then: () => Promise<unknown>) {
  let results = 0;
  return store.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      results += 1;
      if (results === nth) await then();
      return result;
    },
  });
}

function shown({ total, lines, gaps }: Report) {
  const sum = (of: readonly bigint[]) => of.reduce((all, one) => all + one, 0n);
  return {
    total: total.sum.amount,
    byLine: sum(lines.map((line) => line.sum.amount)),
    byCourse: sum(lines.flatMap((line) => line.course.map(({ amount }) => amount))),
    // Complete, or said to be not.
    claim: [total.sum.isComplete, gaps.length === 0],
  };
}

test.each([1, 2, 3, 4])(
  "usage is that of one instant, whatever is loaded after statement %d",
  async (nth) => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const { store } = bench;
    const now = bench.now;
    const [source] = await usageSources(store.db);
    if (source === undefined) throw new Error("no source was loaded");
    const query = USAGE_QUERY.parse({ by: "project", per: "day" });
    const question = questionOf(query, { source, now, isLoaded: true });
    const before = shown(
      await inSnapshot(store.db, (snapshot) => reportOf(snapshot, question, { now, masked: false })),
    );
    expect(before.byLine).toBe(before.total);
    expect(before.byCourse).toBe(before.total);
    let hasHappened = false;
    const db = interrupted(store, nth, async () => {
      hasHappened = true;
      await bench.sql("UPDATE usage.dated_record SET traces = traces + 7");
      await bench.sql(
        "DELETE FROM usage.coverage WHERE period_start = (SELECT min(period_start) FROM usage.coverage)",
      );
    });
    const during = shown(
      await inSnapshot(db, (snapshot) => reportOf(snapshot, question, { now, masked: false })),
    );
    expect(hasHappened).toBe(true);
    expect(during).toEqual(before);
  },
);

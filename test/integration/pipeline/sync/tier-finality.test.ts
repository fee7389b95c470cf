import { expect, test } from "vitest";
import { dayOf } from "../../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { checkTotals } from "../../../../src/core/pipeline/proof/check-totals.ts";
import { describeTotals } from "../../../../src/features/costs/totals.command.ts";
import { EVERYTHING, seeLateChanges, setupUnwatched } from "../../../support/meters.ts";

test("a tier is final when a trace cannot change it any more, or earlier where late changes were watched", async () => {
  const bench = await setupUnwatched({ workspaces: [0], days: 20 });
  const finalFor = async () => {
    await bench.sync(EVERYTHING);
    const rows = await bench.sql<{ meter: string; until: Date }>(
      `SELECT DISTINCT usage.meter_of(kind, trace_tier) AS meter, max(period_end) AS until
       FROM usage.coverage JOIN usage.scope USING (scope_id)
       WHERE final AND stride = 'day' GROUP BY scope_id, kind, trace_tier ORDER BY 1`,
    );
    return rows.map(({ meter, until }) => [meter, (bench.today - until.getTime()) / DAY_MS]);
  };
  const others = [
    ["deployments", 3],
    ["traces", 3],
  ];
  const sorted = (all: unknown[][]) => [...all].sort((a, b) => String(a[0]).localeCompare(String(b[0])));
  expect(await finalFor()).toEqual(sorted([...others, ["longlived", 15]]));
  const late = await bench.sql("SELECT FROM usage.late_change WHERE was_final");
  expect(late).toEqual([]);

  const totals = describeTotals(await checkTotals(await bench.open(EVERYTHING), "all"));
  const day = (ago: number) => dayOf(bench.today - ago * DAY_MS);
  expect(totals).toContain(` to ${day(3)}: `);
  expect(totals).toContain(`long-lived traces, only to ${day(15)}: `);
  expect(totals).toMatch(/^deployment usage: /m);

  await seeLateChanges(bench, 120);
  expect(await finalFor()).toEqual(sorted([...others, ["longlived", 5]]));

  // An upgrade of a day that was final is found by a reconcile. Later days wait for as long as it took, and what was final stays so.
  const { standin, workspaceIds, today } = bench;
  const sender = standin.organisation.streams.find(
    ({ project, user, weight }) => project.workspace.id === workspaceIds[0] && user !== null && weight > 20,
  );
  if (sender === undefined) throw new Error("no sender");
  for (let hour = 0; hour < 24; hour++)
    standin.ledger.upgrade({ ...sender, at: today - 9 * DAY_MS + hour * 3_600_000 }, 1);
  await bench.reconcile({ meter: "longlived", repair: true }, EVERYTHING);
  const seen = await bench.sql(
    `SELECT age_hours, was_final FROM usage.late_change
     WHERE trace_tier = 'longlived' AND group_by = 'workspace' AND observed_on = (now() AT TIME ZONE 'UTC')::date`,
  );
  expect(seen).toEqual([{ age_hours: 240, was_final: true }]);
  expect(await finalFor()).toEqual(sorted([...others, ["longlived", 5]]));
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { reconcileScheduled } from "../../../../src/core/pipeline/proof/reconcile.ts";
import { seed, times } from "../../../support/drawn.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { unreconciledDays } from "../../../support/tables.ts";
import { wrong } from "./bench.ts";

const SEED = seed(20_260_105);
const ROUNDS = times(8);
const DAYS = 9;
const HOURLY_DAYS = 7;

/** Picks by number among whatever is there: what a seed does not depend on ids. */
const pick = <T>(all: readonly T[], n: number): T => all[n % all.length] as T;

type Step = { readonly what: string; readonly n: number; readonly at: number; readonly by: number };

const steps = fc.array(
  fc.record({
    what: fc.constantFrom(
      "restate",
      "restate",
      "late",
      "late",
      "drop",
      "bring back",
      "rename",
      "stored count",
      "stored row gone",
      "stored row invented",
      "name forgotten",
    ),
    n: fc.nat({ max: 9_999 }),
    at: fc.nat({ max: DAYS * 24 - 1 }),
    by: fc.integer({ min: -40, max: 40 }),
  }),
  { minLength: 1, maxLength: 6 },
);

async function take(bench: Bench, { what, n, at, by }: Step): Promise<void> {
  const { organisation, ledger } = bench.standin;
  const streams = organisation.streams.filter(
    ({ project }) => bench.workspaceIds.includes(project.workspace.id) && !project.dropped,
  );
  const projects = organisation.projects.filter(({ workspace }) => bench.workspaceIds.includes(workspace.id));
  const instant = bench.dataStart + at * HOUR_MS;
  const table = n % 2 === 0 ? "usage.dated_record" : "usage.hourly_record";
  const record = `(SELECT ctid FROM ${table} ORDER BY series_id, bucket_start OFFSET ${n} % greatest(1, (SELECT count(*) FROM ${table})) LIMIT 1)`;
  switch (what) {
    case "restate": {
      const { project, user, key } = pick(streams, n);
      ledger.change({ project, user, key, at: instant }, by);
      return;
    }
    case "late":
      ledger.change(
        {
          project: pick(
            projects.filter(({ dropped }) => !dropped),
            n,
          ),
          user: n % 3 === 0 ? null : pick(organisation.users, n),
          key: n % 5 === 0 ? null : pick(organisation.keys, n),
          at: instant,
        },
        Math.abs(by) + 1,
      );
      return;
    case "drop":
      if (projects.filter(({ dropped }) => !dropped).length > 2) pick(projects, n).dropped = true;
      return;
    case "bring back":
      pick(projects, n).dropped = false;
      return;
    case "rename":
      pick(projects, n).name = `Renamed "${n}", by ${by}`;
      return;
    case "stored count":
      await bench.sql(`UPDATE ${table} SET traces = traces + $1 WHERE ctid = ${record}`, [Math.abs(by)]);
      return;
    case "stored row gone":
      await bench.sql(`DELETE FROM ${table} WHERE ctid = ${record}`);
      return;
    case "stored row invented":
      await bench.sql(
        `WITH e AS (INSERT INTO usage.entity (source_id, dimension, external_id)
                    VALUES (1, 'project', 'invented ' || $1::integer) ON CONFLICT DO NOTHING RETURNING entity_id),
              s AS (INSERT INTO usage.series (scope_id, entity_id)
                    SELECT scope_id, entity_id FROM e, usage.trace_scope WHERE group_by = 'project' AND stride = 'day' RETURNING series_id)
         INSERT INTO usage.dated_record SELECT series_id, ($2::timestamptz AT TIME ZONE 'UTC')::date, $3 FROM s`,
        [n, new Date(instant).toISOString(), Math.abs(by)],
      );
      return;
    case "name forgotten":
      await bench.sql(
        `DELETE FROM usage.entity_name WHERE ctid = (
           SELECT n.ctid FROM usage.entity_name n JOIN usage.entity USING (entity_id) WHERE dimension <> 'workspace'
           ORDER BY entity_id, name OFFSET $1 % greatest(1, (SELECT count(*) FROM usage.entity_name)) LIMIT 1)`,
        [n],
      );
  }
}

test(`passes with repair end without a difference and with the stand-in's book (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const bench = await setup({ workspaces: [0, 1], days: DAYS, hourlyForMs: HOURLY_DAYS * DAY_MS });
  await bench.sync();
  const finalUntil = bench.today - 3 * DAY_MS;
  const ranges = {
    day: { start: bench.dataStart, end: finalUntil },
    hour: { start: bench.today - HOURLY_DAYS * DAY_MS, end: finalUntil },
  } as const;
  let found = 0;
  for (const [round, taken] of fc.sample(steps, { seed: SEED, numRuns: ROUNDS }).entries()) {
    const about = `seed ${SEED}, round ${round}: ${JSON.stringify(taken)}`;
    for (const step of taken) await take(bench, step);
    const byHand = round % 2 === 0;
    const results = byHand
      ? [
          await bench.reconcile({ repair: true }),
          await bench.reconcile({ repair: true, stride: "hour", range: ranges.hour }),
        ]
      : await reconcileScheduled(await bench.open(), { days: 45 });
    if (!byHand) await bench.reconcile({ repair: true, stride: "hour", range: ranges.hour });
    for (const result of results) {
      expect(result, about).toMatchObject({
        open: 0,
        platformDisagrees: 0,
        failures: [],
        unverified: 0,
        moved: 0,
      });
      found += result.repaired?.differences ?? 0;
    }
    for (const stride of ["day", "hour"] as const) {
      expect(await wrong(bench, stride, ranges[stride]), about).toEqual([]);
    }
    const left = { range: { start: bench.dataStart, end: bench.today } };
    expect(await unreconciledDays(bench, left), about).toEqual([]);
  }
  expect(found).toBeGreaterThan(ROUNDS);
  const kinds = await bench.sql<{ kind: string }>(
    "SELECT DISTINCT kind FROM usage.difference WHERE compared_with = 'export' ORDER BY 1",
  );
  expect(kinds.map(({ kind }) => kind)).toEqual([
    "missing_in_export",
    "missing_in_store",
    "name_differs",
    "traces_differ",
  ]);
});

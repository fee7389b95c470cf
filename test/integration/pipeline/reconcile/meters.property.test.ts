import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/domain/time/stride.ts";
import { METER } from "../../../../src/domain/usage/meter.ts";
import { reconcileScheduled } from "../../../../src/pipeline/proof/reconcile.ts";
import { seed, times } from "../../../support/drawn.ts";
import { EVERYTHING, inMeterLedger, inMeterStore, LOADED, setupMeters } from "../../../support/meters.ts";
import type { Bench } from "../../../support/source.ts";
import { differences, unreconciledDays } from "../../../support/tables.ts";

/**
 * Whatever is upgraded, restated or renamed late, in whatever kind and tier, and whatever is wrong in the store: a pass with repair
 * ends without a difference, and what is stored of each is the stand-in's own book.
 */

const SEED = seed(20_260_105);
const ROUNDS = times(6);
const DAYS = 7;

const pick = <T>(all: readonly T[], n: number): T => all[n % all.length] as T;

const steps = fc.array(
  fc.record({
    what: fc.constantFrom(
      ...["upgrade", "upgrade", "restate", "deployment", "deployment", "late deployment"],
      ...["drop", "rename", "stored amount", "stored row gone"],
    ),
    n: fc.nat({ max: 9_999 }),
    // Most of it final.
    at: fc.nat({ max: (DAYS - 2) * 24 }),
    by: fc.integer({ min: 1, max: 40 }),
  }),
  { minLength: 3, maxLength: 8 },
);
type Step = { readonly what: string; readonly n: number; readonly at: number; readonly by: number };

async function take(bench: Bench, { what, n, at, by }: Step): Promise<void> {
  const { organisation, ledger, deploymentLedger } = bench.standin;
  const isOurs = ({ project }: { project: { workspace: { id: string } } }) =>
    bench.workspaceIds.includes(project.workspace.id);
  const instant = bench.dataStart + at * HOUR_MS;
  const isBusy = ({ weight }: { weight: number }) => weight > 20;
  const { project, user, key } = pick(
    organisation.streams.filter((one) => isOurs(one) && isBusy(one)),
    n,
  );
  const runs = pick(organisation.deploymentStreams.filter(isOurs), n);
  const measure = pick(METER.deployments.measures, n) as "agent_runs";
  const record = `(SELECT ctid FROM usage.dated_record ORDER BY series_id, bucket_start
    OFFSET ${n} % greatest(1, (SELECT count(*) FROM usage.dated_record)) LIMIT 1)`;
  switch (what) {
    case "upgrade":
      // A rule upgrades what came in during a day.
      for (let hour = 0; hour < 24; hour++)
        ledger.upgrade({ project, user, key, at: instant + hour * HOUR_MS }, by);
      return;
    case "restate":
      ledger.change(
        { project, user, key, at: instant },
        n % 2 === 0 ? by : -by,
        n % 3 ? "longlived" : "shortlived",
      );
      return;
    case "deployment":
      deploymentLedger.change({ ...runs, at: instant }, measure, n % 2 === 0 ? by : -by);
      return;
    case "late deployment": {
      const cell = { project: runs.project, user: pick(organisation.users, n), key: null, at: instant };
      for (const one of METER.deployments.measures) deploymentLedger.change(cell, one as typeof measure, by);
      return;
    }
    case "drop": {
      const { project } = runs;
      const isShown = (one: typeof runs) =>
        one.project.workspace === project.workspace && one.project !== project && !one.project.dropped;
      // A workspace that loses all of it is doubted, not repaired (ended-meters.test.ts).
      if (project.dropped || organisation.deploymentStreams.some(isShown)) project.dropped = !project.dropped;
      return;
    }
    case "rename":
      runs.project.name = `Renamed "${n}", by ${by}`;
      return;
    case "stored amount":
      await bench.sql(`UPDATE usage.dated_record SET traces = traces + $1 WHERE ctid = ${record}`, [by]);
      return;
    case "stored row gone":
      await bench.sql(`DELETE FROM usage.dated_record WHERE ctid = ${record}`);
  }
}

test(`passes with repair end with the stand-in's books of every kind and tier (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const bench = await setupMeters({ days: DAYS });
  await bench.sync(EVERYTHING);
  const range = { start: bench.dataStart, end: bench.today - 3 * DAY_MS };
  const found = new Map<string, number>();
  for (const [round, taken] of fc.sample(steps, { seed: SEED, numRuns: ROUNDS }).entries()) {
    const about = `seed ${SEED}, round ${round}: ${JSON.stringify(taken)}`;
    for (const step of taken) await take(bench, step);
    const results =
      round % 2 === 0
        ? (await bench.reconcile({ repair: true }, EVERYTHING)).strides
        : (await reconcileScheduled(await bench.open(EVERYTHING), { days: 45 })).filter(
            ({ stride }) => stride === "day",
          );
    expect(
      results.map(({ meter }) => meter),
      about,
    ).toEqual(LOADED);
    for (const result of results) {
      expect(result, about).toMatchObject({
        open: 0,
        platformDisagrees: 0,
        failures: [],
        unverified: 0,
        moved: 0,
      });
      found.set(result.meter, (found.get(result.meter) ?? 0) + (result.repaired?.differences ?? 0));
    }
    for (const meter of LOADED) {
      const book = inMeterLedger(bench.standin, { meter, range, workspaceIds: bench.workspaceIds });
      expect(differences(await inMeterStore(bench, { meter, range }), book), `${meter}, ${about}`).toEqual(
        [],
      );
      const left = { meter, range: { start: bench.dataStart, end: bench.today } };
      expect(await unreconciledDays(bench, left), `${meter}, ${about}`).toEqual([]);
    }
  }
  for (const meter of LOADED) expect(found.get(meter), JSON.stringify([...found])).toBeGreaterThan(2);
});

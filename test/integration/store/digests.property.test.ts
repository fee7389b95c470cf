import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { ResponseCollector } from "../../../src/core/domain/usage/response.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { type Load, type LoadResult, loadResponse } from "../../../src/core/store/load/load.ts";
import { compactCoverage } from "../../../src/core/store/retention/compact.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { times } from "../../support/drawn.ts";
import { expectTrueDigests } from "./digests.ts";
import { intercepted } from "./model/statements.ts";
import { createSource, FIRST_DAY, type StoreBundle, setupSource } from "./setup.ts";

const WORKSPACES = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
const DAYS = 5;
type Truth = number[][][];
interface Requested {
  readonly from: number;
  readonly days: number;
  readonly workspaces: readonly number[];
}
const ALL: Requested = { from: 0, days: DAYS, workspaces: [0, 1] };

/** Every workspace and day has a count, so that no response seems to delete a window. */
function truthOf(seed: number): Truth {
  return Array.from({ length: DAYS }, (_, day) =>
    WORKSPACES.map((_, workspace) =>
      [1, 2].map((project) => 1 + ((seed + day * 7 + workspace * 3 + project) % 5)),
    ),
  );
}

class Loads {
  readonly truth = truthOf(0);
  statements: string[] = [];
  readonly #bundle: StoreBundle & { readonly sourceId: number };

  constructor(bundle: StoreBundle & { readonly sourceId: number }) {
    this.#bundle = bundle;
  }

  async load({ from, days, workspaces }: Requested, options: Partial<Load> = {}): Promise<LoadResult> {
    const { store, sourceId } = this.#bundle;
    const window = {
      stride: "day" as const,
      start: FIRST_DAY + from * DAY_MS,
      end: FIRST_DAY + (from + days) * DAY_MS,
    };
    const workspaceIds = workspaces.map((one) => WORKSPACES[one] as string);
    const response = new ResponseCollector({ window, groupBy: "project", workspaceIds });
    for (let day = from; day < from + days; day++) {
      for (const workspace of workspaces) {
        response.add(
          (this.truth[day]?.[workspace] ?? []).flatMap((traces, project) =>
            traces < 0
              ? []
              : [
                  {
                    bucketStart: FIRST_DAY + day * DAY_MS,
                    workspaceId: WORKSPACES[workspace] as string,
                    dimensionId: `project ${project}`,
                    dimensionName: null,
                    traces,
                  },
                ],
          ),
        );
      }
    }
    const scopes = { sourceId, groupBy: "project" as const, stride: "day" as const, workspaceIds };
    const whole = {
      sourceId,
      meter: "traces" as const,
      groupBy: "project" as const,
      window,
      response,
      settleAfterMs: 0,
      fetchToken: await drawFetchToken(store.db),
      scopeIds: await scopesOf(store.db, scopes),
      ...options,
    };
    this.statements = [];
    const before = async ({ text }: { text: string }) => void this.statements.push(text);
    return intercepted({ before }, () => loadResponse(store, whole));
  }

  async stored(): Promise<Truth> {
    const { rows } = await this.#bundle.reader.query(
      `SELECT r.bucket_start - $1::date AS day, w.external_id AS workspace, e.external_id AS project, r.traces::int
       FROM usage.dated_record r JOIN usage.series s USING (series_id) JOIN usage.entity e USING (entity_id)
       JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id`,
      [new Date(FIRST_DAY).toISOString().slice(0, 10)],
    );
    const counts: Truth = Array.from({ length: DAYS }, () => WORKSPACES.map(() => [-1, -1]));
    for (const { day, workspace, project, traces } of rows) {
      const of = counts[day]?.[WORKSPACES.indexOf(workspace)] as number[];
      of[Number(project.slice(-1))] = traces;
    }
    return counts;
  }

  replacesCoverage(): boolean {
    return this.statements.some((text) => /insert into usage\.coverage/i.test(text));
  }

  compares(): boolean {
    return this.statements.some((text) => text.includes("usage_stage"));
  }
}

async function setup() {
  const bundle = await setupSource({ workspaceIds: WORKSPACES, dataStart: FIRST_DAY });
  return { ...bundle, loads: new Loads(bundle), reader: bundle.reader };
}

describe("a response that is known by its digest", () => {
  test("is not compared with what is stored, and counts as unchanged and read again", async () => {
    const { loads, reader } = await setup();
    await loads.load(ALL);
    expect(await loads.load(ALL)).toMatchObject({
      outcome: "loaded",
      unchanged: 20,
      updated: 0,
      inserted: 0,
    });
    expect([loads.compares(), loads.replacesCoverage()]).toEqual([false, false]);
    const { rows } = await reader.query(
      "SELECT count(DISTINCT fetch_number)::int AS n, max(fetch_number)::int AS newest FROM usage.coverage",
    );
    expect(rows).toEqual([{ n: 1, newest: 2 }]);
    expect(await loads.load({ from: 1, days: 2, workspaces: [1] })).toMatchObject({ unchanged: 4 });
    expect([loads.compares(), loads.replacesCoverage()]).toEqual([false, true]);
    expect(await expectTrueDigests(reader)).toBe(4);
  });

  test("makes final what is now, and says of its own days alone that it read them", async () => {
    const { loads, reader } = await setup();
    const perDay = async () => {
      const { rows } = await reader.query<{ fetches: number[]; final: boolean[] }>(
        `SELECT array_agg(v.fetch_number::int ORDER BY day) AS fetches, array_agg(v.final ORDER BY day) AS final
         FROM usage.coverage v JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id
         CROSS JOIN LATERAL generate_series(v.period_start, v.period_end - interval '1 day', interval '1 day') day
         GROUP BY w.external_id ORDER BY w.external_id`,
      );
      return rows;
    };
    const [fetches, final] = [
      WORKSPACES.map(() => Array(DAYS).fill(0)),
      WORKSPACES.map(() => Array(DAYS).fill(false)),
    ];
    const notFinal = { settleAfterMs: 100 * 365 * DAY_MS };
    for (const [nth, { requested, more = {} }] of [
      { requested: ALL, more: notFinal },
      { requested: { ...ALL, from: 2, days: 3 }, more: notFinal },
      { requested: ALL, more: notFinal },
      { requested: ALL },
      { requested: { ...ALL, from: 1, days: 4 } },
      { requested: { ...ALL, from: 0, days: 4 } },
      { requested: { from: 0, days: 5, workspaces: [1] } },
      { requested: { from: 1, days: 3, workspaces: [0] }, more: notFinal },
      { requested: ALL },
      { requested: { ...ALL, from: 0, days: 3 } },
      { requested: ALL },
      { requested: { from: 0, days: 4, workspaces: [0] } },
      { requested: { ...ALL, from: 0, days: 4 } },
    ].entries()) {
      expect(await loads.load(requested, more)).toMatchObject({ outcome: "loaded", updated: 0 });
      expect(loads.compares(), `load ${nth}`).toBe(false);
      for (const workspace of requested.workspaces) {
        for (let day = requested.from; day < requested.from + requested.days; day++) {
          (fetches[workspace] as number[])[day] = nth + 1;
          if (more !== notFinal) (final[workspace] as boolean[])[day] = true;
        }
      }
      expect(await perDay(), `load ${nth}`).toEqual(
        WORKSPACES.map((_, one) => ({ fetches: fetches[one], final: final[one] })),
      );
    }
    await expectTrueDigests(reader);
  });

  test("is compared all the same by a repair", async () => {
    const { loads } = await setup();
    await loads.load(ALL);
    expect(await loads.load(ALL, { isRepair: true })).toMatchObject({ unchanged: 20 });
    expect(loads.compares()).toBe(true);
  });
});

const requested = fc
  .record({
    from: fc.nat(DAYS - 1),
    days: fc.integer({ min: 1, max: DAYS }),
    workspaces: fc.constantFrom([0], [1], [0, 1]),
  })
  .map((one): Requested => ({ ...one, days: Math.min(one.days, DAYS - one.from) }));
/** As somebody else would change records. */
const TAMPERINGS = [
  "UPDATE usage.dated_record SET traces = 99 WHERE bucket_start = $day",
  "DELETE FROM usage.dated_record WHERE bucket_start = $day",
  "INSERT INTO usage.hourly_record SELECT series_id, $day, 1 FROM usage.series ON CONFLICT DO NOTHING",
  "TRUNCATE usage.dated_record",
];
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("load" as const), requested }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("change" as const),
      day: fc.nat(DAYS - 1),
      workspace: fc.nat(1),
      // The second project may vanish; the first always has a count.
      project: fc.nat(1),
      traces: fc.integer({ min: -1, max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("tamper" as const),
      day: fc.nat(DAYS - 1),
      how: fc.constantFrom(...TAMPERINGS),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("compact" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

test("no order of loads, changes and merged intervals leaves a digest that lies", async () => {
  const bundle = await setup();
  let known = 0;
  const holds = async (steps: Step[]) => {
    const sourceId = await createSource(bundle, { workspaceIds: WORKSPACES, dataStart: FIRST_DAY });
    const loads = new Loads({ ...bundle, sourceId });
    await loads.load(ALL);
    for (const one of steps) {
      if (one.do === "change") {
        const counts = loads.truth[one.day]?.[one.workspace] as number[];
        counts[one.project] = one.project === 0 ? Math.max(1, one.traces) : one.traces;
      } else if (one.do === "tamper") {
        const first = new Date(FIRST_DAY).toISOString().slice(0, 10);
        await bundle.reader.query(one.how.replace("$day", `'${first}'::date + ${one.day}`));
        expect(await expectTrueDigests(bundle.reader), one.how).toBe(0);
      } else if (one.do === "compact") {
        await compactCoverage(bundle.store, { sourceId, olderThanDays: 0 });
      } else {
        expect(await loads.load(one.requested)).toMatchObject({ outcome: "loaded" });
        if (!loads.compares()) known++;
        const stored = await loads.stored();
        const { from, days, workspaces } = one.requested;
        for (let day = from; day < from + days; day++) {
          for (const workspace of workspaces)
            expect(stored[day]?.[workspace]).toEqual(loads.truth[day]?.[workspace]);
        }
      }
      await expectTrueDigests(bundle.reader);
    }
    await loads.load(ALL);
    expect(await loads.stored()).toEqual(loads.truth);
  };
  const load = { do: "load" as const, requested: ALL };
  const examples = TAMPERINGS.map((how): [Step[]] => [[load, { do: "tamper", day: 1, how }]]);
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), holds), {
    numRuns: times(12) + examples.length,
    examples,
  });
  expect(known).toBeGreaterThan(5);
});

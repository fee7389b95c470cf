import fc from "fast-check";
import type pg from "pg";
import { expect, test } from "vitest";
import type { FetchToken } from "../../src/core/domain/coverage/finality.ts";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { applyListing } from "../../src/core/store/access/workspaces.ts";
import { entityIds } from "../../src/core/store/catalog/entities.ts";
import { learnNames } from "../../src/core/store/catalog/entity-names.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { createPrices } from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, untilLockWaits, windowOf } from "../support/store.ts";

/** A name holds from the fetch that first carried it until the fetch of another one, whatever buckets a response is about. */

const [ONE, TWO] = WORKSPACES;
const iso = (at: number) => new Date(at).toISOString();

interface Naming {
  readonly number: number;
  readonly at: number;
  readonly names: Readonly<Record<string, string>>;
}

async function respond(
  { store, sourceId }: { store: Store; sourceId: number },
  { number, at, names }: Naming,
  { groupBy, day }: { groupBy: "workspace" | "project" | "user"; day: string },
) {
  const next = iso(Date.parse(day) + DAY_MS);
  for (const [id, name] of Object.entries(names)) {
    await loadRows(store, {
      sourceId,
      groupBy,
      workspaceId: groupBy === "workspace" ? id : ONE,
      window: windowOf("day", day, next),
      rows: [[day, id, 100, name]],
      fetchToken: { fetchNumber: number, fetchedAt: at },
    });
  }
}

test("charges of days that have ended keep the name of their workspace in FOCUS", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  await createPrices(bench.store, [{ unitPrice: "0.01" }]);
  const days = [
    ["2026-03-10", "2026-03-11T08:00Z", "Research"],
    ["2026-04-10", "2026-04-11T08:00Z", "Research"],
    ["2026-05-10", "2026-05-10T08:00Z", "Search"],
    ["2026-04-11", "2026-05-11T08:00Z", "Search"],
  ] as const;
  for (const [day, at, name] of days) {
    const { fetchNumber: number } = await drawFetchToken(bench.store.db);
    await respond(
      bench,
      { number, at: Date.parse(at), names: { [ONE]: name } },
      { groupBy: "workspace", day },
    );
  }
  const { rows } = await client.query(
    `SELECT concat_ws(' ', "x_UsageDate", "SubAccountName") AS line, "ChargeDescription" AS told
     FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY 1`,
  );
  expect(rows.map(({ line }) => line)).toEqual([
    "2026-03-10 Research",
    "2026-04-10 Research",
    "2026-04-11 Research",
    "2026-05-10 Search",
  ]);
  for (const { line, told } of rows) expect(told).toContain(`of ${line.slice(11)} on`);
});

test("of two responses at once, the older one that commits last does not make its name current", async () => {
  const { store, sourceId, url } = await setupSource();
  const client = await connectPlain(url);
  const [entityId = 0] = await entityIds(store.db, { sourceId, dimension: "workspace", dimensionIds: [ONE] });
  const [first, older, newer] = await Promise.all([1, 2, 3].map(() => drawFetchToken(store.db))).then(
    (fetchTokens) => fetchTokens.toSorted((a, b) => a.fetchNumber - b.fetchNumber),
  );
  const learn = (fetchToken: FetchToken | undefined, name: string) =>
    learnNames(store, {
      sourceId,
      fetchToken: fetchToken as FetchToken,
      part: 0,
      names: [{ entityId, name }],
    });
  await learn(first, "Team");
  await client.query("BEGIN");
  await client.query("SELECT usage.learn_names($1, $2, 0, now(), ARRAY[$3::integer], ARRAY['Team'])", [
    sourceId,
    newer?.fetchNumber,
    entityId,
  ]);
  const late = learn(older, "Research");
  await untilLockWaits(store);
  await client.query("COMMIT");
  await late;
  const { rows } = await client.query(
    "SELECT workspace_name AS name FROM reporting.dim_workspace ORDER BY 1",
  );
  expect(rows[0]).toEqual({ name: "Team" });
});

const SUBJECTS = ["workspace", "project", "user"] as const;
const anyFetch = fc.record({
  hoursLater: fc.constantFrom(0, 1, 7, 24, 50),
  renamed: fc.constantFrom("nothing", "nothing", "workspace", "workspaces", "others"),
  of: fc.constantFrom("listing" as const, ...SUBJECTS),
  day: fc.constantFrom("2026-03-02", "2026-03-20", "2026-04-01"),
  arrives: fc.nat(1000),
  again: fc.boolean(),
});

const SEED = seed();

test(`names in time follow the order of fetches, in whatever order they are loaded [seed ${SEED}]`, async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  await fc.assert(
    fc.asyncProperty(fc.array(anyFetch, { minLength: 1, maxLength: 8 }), async (drawn) => {
      await client.query("DELETE FROM usage.entity_name; DELETE FROM usage.recent_naming");
      const platform = { [ONE]: "Team", [TWO]: "Research", p: "test-x", u: "ada@example.test" };
      let at = Date.parse("2026-03-05T12:00Z");
      const fetches: (Naming & (typeof drawn)[number])[] = [];
      for (const fetch of drawn) {
        at += fetch.hoursLater * HOUR_MS;
        const turn = (name: string, other: string) => (name === other ? `${other} 2` : other);
        if (fetch.renamed === "workspace") platform[ONE] = turn(platform[ONE], "Team");
        if (fetch.renamed === "workspaces") [platform[ONE], platform[TWO]] = [platform[TWO], platform[ONE]];
        if (fetch.renamed === "others") {
          platform.p = turn(platform.p, "test-x");
          platform.u = turn(platform.u, "ada@example.test");
        }
        const ids = {
          listing: WORKSPACES,
          workspace: [ONE] as const,
          project: ["p"] as const,
          user: ["u"] as const,
        }[fetch.of];
        const names = Object.fromEntries(ids.map((id) => [id, platform[id]]));
        fetches.push({ ...fetch, names, at, number: (await drawFetchToken(bench.store.db)).fetchNumber });
      }
      const arrived = fetches.toSorted((a, b) => a.arrives - b.arrives);
      for (const fetch of [...arrived, ...arrived.filter(({ again }) => again)]) await arrive(bench, fetch);
      await expectNames(client, fetches);
    }),
    { seed: SEED, numRuns: times(20) },
  );
});

async function arrive(
  bench: { store: Store; sourceId: number },
  fetch: Naming & { of: "listing" | (typeof SUBJECTS)[number]; day: string },
) {
  const { of, number, at, names } = fetch;
  if (of !== "listing") return respond(bench, fetch, { groupBy: of, day: fetch.day });
  return applyListing(bench.store, {
    sourceId: bench.sourceId,
    workspaces: Object.entries(names).map(([workspaceId, name]) => ({ workspaceId, name, isDeleted: false })),
    fetchToken: { fetchNumber: number, fetchedAt: at },
  });
}

/** Each day has the name of the last fetch until its end, or of the first fetch of all; the current name is the newest one's. */
async function expectNames(client: pg.Client, fetches: readonly Naming[]): Promise<void> {
  const days = Array.from({ length: 40 }, (_, n) => Date.parse("2026-02-25") + n * DAY_MS);
  const expected: string[] = [];
  const current: string[] = [];
  for (const id of [ONE, TWO, "p", "u"]) {
    const named = fetches.filter(({ names }) => names[id] !== undefined);
    if (named.length === 0) continue;
    const nameAt = (end: number) => (named.findLast(({ at }) => at < end) ?? named[0])?.names[id];
    for (const day of days) expected.push(`${id} ${iso(day).slice(0, 10)} ${nameAt(day + DAY_MS)}`);
    current.push(`${id} ${named.at(-1)?.names[id]}`);
  }
  const isShown = (line: string) => !line.startsWith("u ");
  const lines = async (statement: string) =>
    (await client.query(`SELECT line FROM (${statement}) s (line) ORDER BY line COLLATE "C"`)).rows.map(
      ({ line }) => line,
    );
  expect(
    await lines(
      `SELECT concat_ws(' ', n.dimension_id, day::date, n.dimension_name)
       FROM generate_series('2026-02-25'::date, '2026-04-05', '1 day') day
       JOIN reporting_detail.dim_name n ON day >= n.valid_from AND day < n.valid_to`,
    ),
  ).toEqual(expected.filter(isShown).sort());
  expect(
    await lines(
      `SELECT concat_ws(' ', dimension_id, dimension_name) FROM reporting_detail.dim_name WHERE is_current`,
    ),
  ).toEqual(current.sort().filter(isShown));
  expect(
    await lines(
      `SELECT concat_ws(' ', workspace_id, workspace_name) FROM reporting.dim_workspace WHERE workspace_name IS NOT NULL
       UNION ALL SELECT concat_ws(' ', project_id, project_name) FROM reporting.dim_project WHERE project_name IS NOT NULL
       UNION ALL SELECT concat_ws(' ', user_id, user_email) FROM reporting_detail.dim_user WHERE user_email IS NOT NULL`,
    ),
  ).toEqual(current);
  expect(
    await lines(`SELECT concat_ws(' ', e.external_id, n.name, n.fetch_number) FROM usage.entity_name n
      JOIN usage.entity e USING (entity_id) JOIN usage.entity_name before USING (entity_id)
      WHERE before.fetch_number = (SELECT max(b.fetch_number) FROM usage.entity_name b
        WHERE b.entity_id = n.entity_id AND b.fetch_number < n.fetch_number) AND before.name = n.name`),
  ).toEqual([]);
}

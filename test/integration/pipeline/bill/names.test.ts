import { expect, test } from "vitest";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import { setupPages } from "../../../support/pages.ts";
import { ALL, setupSandboxes } from "../../../support/sandboxes.ts";
import type { Bench } from "../../../support/source.ts";

const setupNames = (standin = {}) => setupSandboxes({ days: 3, standin });
const read = async (bench: Bench) => readBill(await bench.open(), { reach: "month", isPatient: false });
const PATHS = {
  organization: "/api/v1/orgs/current/service-keys",
  workspace: "/api/v1/api-key",
  boxes: "/api/v2/sandboxes/boxes",
  snapshots: "/api/v2/sandboxes/snapshots",
} as const;

async function named(bench: Bench, view: "dim_api_key" | "dim_resource") {
  const [id, name] =
    view === "dim_api_key" ? ["api_key_short_key", "api_key_name"] : ["dimension_id", "dimension_name"];
  const rows = await bench.sql<{ id: string; name: string | null }>(
    `SELECT ${id} AS id, ${name} AS name FROM reporting_detail.${view} WHERE ${view === "dim_api_key" ? "api_key_short_key <> '(none)'" : "group_by = 'sandbox'"}`,
  );
  return new Map(rows.map((row) => [row.id, row.name]));
}

function expected(bench: Bench, ids: Iterable<string>) {
  const { keys, sandboxes } = bench.standin.organisation;
  const names = new Map<string, string | null>([
    ...keys.map(({ shortKey, description }) => [shortKey, description] as const),
    ...sandboxes.map(({ id, name }) => [id, name] as const),
  ]);
  return new Map(
    [...ids].map((id) => {
      const name = names.get(id) ?? null;
      return [id, name?.includes("@") ? null : name];
    }),
  );
}

const figures = (bench: Bench) =>
  bench.sql("SELECT sum(traces)::text AS traces, count(*)::integer FROM reporting.fct_usage_api_key_daily");

test("API keys, sandboxes and snapshots have the names of the platform's lists, and a rename is kept", async () => {
  const bench = await setupNames();
  await bench.sync(ALL);
  const before = await figures(bench);
  expect([...(await named(bench, "dim_api_key")).values()].every((name) => name === null)).toBe(true);

  expect(await read(bench)).toMatchObject({ parts: { names: { refusal: null } }, failed: [] });
  for (const view of ["dim_api_key", "dim_resource"] as const) {
    const found = await named(bench, view);
    expect(found.size, view).toBeGreaterThan(2);
    expect(found, view).toEqual(expected(bench, found.keys()));
    expect([...found.values()].filter((name) => name !== null).length, view).toBeGreaterThan(2);
  }
  const keys = await named(bench, "dim_api_key");
  const [renamed] = bench.standin.organisation.keys.filter(
    ({ shortKey }) => (keys.get(shortKey) ?? null) !== null,
  );
  const first = renamed?.description;
  if (renamed !== undefined) renamed.description = "renamed";
  await read(bench);
  expect((await named(bench, "dim_api_key")).get(renamed?.shortKey ?? "")).toBe("renamed");
  const kept = await bench.sql<{ name: string }>(
    `SELECT name FROM usage.entity_name n JOIN usage.entity e USING (entity_id)
     WHERE e.dimension = 'api_key' AND e.external_id = '${renamed?.shortKey}' ORDER BY n.fetch_number`,
  );
  expect(kept.map(({ name }) => name)).toEqual([first, "renamed"]);
  await bench.sync(ALL);
  expect((await named(bench, "dim_api_key")).get(renamed?.shortKey ?? "")).toBe("renamed");
  expect(await figures(bench)).toEqual(before);
});

test("each key has its last use, expiry and creator, but no address, in the view and on the page", async () => {
  const bench = await setupNames();
  await bench.sync(ALL);
  await read(bench);
  const { keys, users } = bench.standin.organisation;
  const rows = await bench.sql<Record<"id" | "used" | "expires" | "by", string | null>>(
    `SELECT api_key_short_key AS id, extract(epoch FROM last_used_at)::bigint::text AS used,
            extract(epoch FROM expires_at)::bigint::text AS expires, created_by AS by
     FROM reporting_detail.dim_api_key WHERE api_key_short_key <> '(none)'`,
  );
  const seconds = (ms: number) => `${Math.round(ms / 1000)}`;
  expect(rows.length).toBeGreaterThan(3);
  expect(rows).toEqual(
    rows.map(({ id }) => {
      const n = keys.findIndex(({ shortKey }) => shortKey === id);
      return {
        id,
        used: n % 5 === 4 ? null : seconds(bench.now - n * 3_600_000),
        expires: n % 3 === 0 ? seconds(bench.now + (n + 1) * 86_400_000) : null,
        by: n % 2 === 0 ? users[n % users.length]?.id : null,
      };
    }),
  );
  const page = await (await setupPages(bench)).get("/usage?source=default&by=api_key");
  expect(page.text).toContain("last used");
  const creator = rows.find(({ by }) => by !== null)?.by ?? "";
  expect(page.text).toContain(creator);

  // What is no instant or text is not known, and costs nothing else.
  const [key] = rows;
  const wrong = {
    short_key: key?.id,
    description: "still named",
    last_used_at: "yesterday",
    expires_at: 7,
    created_by: {},
  };
  bench.standin.faults.script({
    fault: { kind: "status", status: 200, body: JSON.stringify([wrong]) },
    match: { path: PATHS.organization },
  });
  bench.standin.faults.script({
    fault: { kind: "status", status: 403 },
    match: { path: PATHS.workspace },
    times: 9,
  });
  await read(bench);
  expect((await named(bench, "dim_api_key")).get(key?.id ?? "")).toBe("still named");
  expect(
    await bench.sql(
      "SELECT last_used_at, expires_at, created_by FROM reporting_detail.dim_api_key WHERE api_key_short_key = $1",
      [key?.id],
    ),
  ).toEqual([{ last_used_at: null, expires_at: null, created_by: null }]);
});

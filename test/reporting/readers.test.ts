import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { now } from "../support/clock.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

const [WORKSPACE] = WORKSPACES;
const USER = "12345678-0000-4000-8000-00000000000b";
const EMAIL = "jane.doe@example.test";
const BEFORE_TODAY = new Date(now() - 2 * 3_600_000).toISOString();

let url: string;
let owner: pg.Client;
let bench: Awaited<ReturnType<typeof setupSource>>;

beforeEach(async () => {
  bench = await setupSource();
  url = bench.url;
  for (const groupBy of GROUPINGS) {
    const id = groupBy === "workspace" ? WORKSPACE : USER;
    const name = groupBy === "user" ? EMAIL : `a ${groupBy}`;
    const load = (window: ReturnType<typeof windowOf>, bucket: string, traces: number) =>
      loadRows(bench.store, {
        sourceId: bench.sourceId,
        workspaceId: WORKSPACE,
        groupBy,
        window,
        rows: [[bucket, id, traces, name]],
      });
    await load(windowOf("day", "2026-03-01", "2026-03-02"), "2026-03-01", 3);
    await load(windowOf("day", "2026-03-01", "2026-03-02"), "2026-03-01", 5);
    await load(windowOf("hour", "2026-03-02T00:00:00Z", "2026-03-02T10:00:00Z"), "2026-03-02T03:00:00Z", 3);
  }
  owner = await connectPlain(url);
  await owner.query(`
    WITH closed AS (
      INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements) VALUES (1, '2026-03-01', '2026-04-01', 0, 0) RETURNING close_id
    )
    INSERT INTO usage.closed_total SELECT close_id, series_id, 5 FROM closed, usage.series;
    -- As if it had been loaded and final three hours ago: an instant of today may still change.
    UPDATE usage.became_final SET final_at = now() - interval '3 hours';
    UPDATE usage.restatement SET restated_at = now() - interval '3 hours'`);
});

async function refusal(client: pg.Client, statement: string): Promise<string> {
  return client.query(statement).then(
    ({ rowCount }) => `done: ${rowCount}`,
    (error: { code?: string; message: string }) => error.code ?? error.message,
  );
}

async function namesOf(client: pg.Client, query: string): Promise<string[]> {
  return (await client.query<{ name: string }>(query)).rows.map(({ name }) => name);
}

const DENIED = "42501";
const RELATIONS = `
  SELECT c.oid::regclass::text AS name FROM pg_class c
  WHERE c.relnamespace = 'usage'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') ORDER BY 1`;
const FUNCTIONS = `
  SELECT format('%s(%s)', p.oid::regproc, (
    SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY at) FROM unnest(p.proargtypes) WITH ORDINALITY a (t, at)
  )) AS name
  FROM pg_proc p WHERE p.pronamespace = '%'::regnamespace ORDER BY 1`;
const functionsOf = (schema: string) => FUNCTIONS.replace("'%'", `'${schema}'`);
const VIEWS = `
  SELECT c.relname AS name FROM pg_class c
  WHERE c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) AND c.relkind = 'v' ORDER BY 1`;

describe.each(["usage_reader", "usage_reader_masked"])("%s", (role) => {
  test("is refused every table, view, sequence and function of the schema usage", async () => {
    const relations = await namesOf(owner, RELATIONS);
    const functions = await namesOf(owner, functionsOf("usage"));
    const sequences = await namesOf(
      owner,
      "SELECT format('usage.%I', relname) AS name FROM pg_class WHERE relkind = 'S' AND relnamespace = 'usage'::regnamespace",
    );
    expect([relations.length > 25, functions.length > 1, sequences.length > 5]).toEqual([true, true, true]);
    const reader = await connectPlain(url, role);
    const attempts = [
      ...relations.map((name) => `SELECT FROM ${name} LIMIT 1`),
      ...relations.map((name) => `DELETE FROM ${name}`),
      ...relations.map((name) => `TRUNCATE ${name}`),
      ...functions.map((name) => `SELECT ${name}`),
      ...sequences.map((name) => `SELECT nextval('${name}')`),
      "SELECT * FROM usage.kysely_migration",
      "CREATE TABLE usage.mine ()",
      "DROP SCHEMA usage CASCADE",
    ];
    const allowed: Record<string, string> = {};
    for (const attempt of attempts) {
      const outcome = await refusal(reader, attempt);
      // A view cannot be truncated at all, which Postgres says before it asks for rights.
      if (outcome !== DENIED && !(outcome === "42809" && attempt.startsWith("TRUNCATE")))
        allowed[attempt] = outcome;
    }
    expect(allowed).toEqual({});
  });

  test("can neither change nor create anything in the schema reporting", async () => {
    const reader = await connectPlain(url, role);
    const attempts = [
      ...(await namesOf(owner, VIEWS)).map((name) => `DELETE FROM ${inSchema(name)}`),
      "CREATE TABLE reporting.mine ()",
      "CREATE VIEW public.mine AS SELECT 1",
      "DROP VIEW reporting.dim_date",
    ];
    for (const attempt of attempts)
      expect(["done: 0", "done: null"]).not.toContain(await refusal(reader, attempt));
  });
});

describe("e-mail addresses", () => {
  async function addressesFor(role: string): Promise<{ shown: string[]; refused: string[] }> {
    const reader = await connectPlain(url, role);
    const calls = (await namesOf(owner, functionsOf("reporting_detail"))).map((call) =>
      call.replace(/NULL::[a-z ]+/, `'${BEFORE_TODAY}'`),
    );
    expect(calls).not.toEqual([]);
    const found = { shown: [] as string[], refused: [] as string[] };
    for (const from of [...(await namesOf(owner, VIEWS)).map(inSchema), ...calls]) {
      await reader.query(`SELECT * FROM ${from}`).then(
        ({ rows }) => JSON.stringify(rows).includes("@") && found.shown.push(from),
        (error: { code: string }) => {
          expect(error.code, from).toBe(DENIED);
          found.refused.push(from);
        },
      );
    }
    return found;
  }

  test("are in dim_user alone, which usage_reader_masked may not read", async () => {
    const alone = ["reporting_detail.dim_user"];
    expect(await addressesFor("usage_reader")).toEqual({ shown: alone, refused: [] });
    expect(await addressesFor("usage_reader_masked")).toEqual({ shown: [], refused: alone });
  });
});

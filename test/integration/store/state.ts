import type pg from "pg";
import { expect } from "vitest";

/** The stored state and proof of every scope, and every stored charge, are what the rules say. Returns how many buckets were compared. */
export async function expectTrueState(reader: pg.ClientBase): Promise<number> {
  const { rows } = await reader.query<{ buckets: number; wrong: object[]; unproved: number[] }>(`
    SELECT (SELECT count(*)::integer FROM usage.state_by_rules(a.scopes)) AS buckets,
           (SELECT coalesce(json_agg(w), '[]') FROM usage.wrong_state(a.scopes) w) AS wrong,
           ARRAY(SELECT usage.wrong_proof(a.scopes)) AS unproved
    FROM (SELECT array_agg(scope_id) AS scopes FROM usage.scope) a`);
  expect(rows[0]).toMatchObject({ wrong: [], unproved: [] });
  const { rows: charges } = await reader.query(
    "SELECT w.* FROM usage.source s, usage.wrong_charges(s.source_id) w",
  );
  expect(charges).toEqual([]);
  return rows[0]?.buckets ?? 0;
}

import fc from "fast-check";
import { expect, test } from "vitest";
import { STRIDE_MS } from "../../../src/core/domain/time/stride.ts";
import type { ExportRow } from "../../../src/core/domain/usage/export.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { compareExport } from "../../../src/core/store/proof/compare-export.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { times } from "../../support/drawn.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { setupSource } from "./setup.ts";

const RUNS = times(12);
const WORKSPACE = "0b7c7f3e-0000-4000-8000-000000000001";
const IDS = Array.from({ length: 140 }, (_, i) => ["", "(none)"][i] ?? `project ${i}, é "\\`);
const BUCKETS = 9;

type Side = Map<string, number>;
const keyOf = (id: string, bucket: number) => `${bucket} ${id}`;

interface Change {
  readonly what: string;
  readonly side: "stored" | "exported";
  readonly id: number;
  readonly other: number;
  readonly bucket: number;
  readonly by: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  what: fc.constantFrom("more", "none", "zero", "gone", "new", "new zero", "swap", "move", "compensate"),
  side: fc.constantFrom("stored" as const, "exported" as const),
  id: fc.nat({ max: IDS.length - 1 }),
  other: fc.nat({ max: IDS.length - 1 }),
  bucket: fc.nat({ max: BUCKETS - 1 }),
  by: fc.integer({ min: 1, max: 50 }),
});
const drawn = fc.record({
  changes: fc.array(change, { maxLength: 4 }),
  splits: fc.array(fc.nat({ max: 1_000 }), { maxLength: 2 }),
  order: fc.constantFrom("bucket", "bucket", "id", "id backwards"),
});

function apply(sides: { stored: Side; exported: Side }, one: Change): void {
  const { what, side, bucket, by } = one;
  const to = sides[side];
  const [id, other] = [IDS[one.id] as string, IDS[one.other] as string];
  const [key, otherKey] = [keyOf(id, bucket), keyOf(other, bucket)];
  const [here, there] = [to.get(key) ?? 0, to.get(otherKey) ?? 0];
  if (what === "more") to.set(key, here + by);
  else if (what === "zero") to.set(key, 0);
  else if (what === "gone") to.delete(key);
  else if (what === "new") to.set(keyOf(`another ${id}`, bucket), by);
  else if (what === "new zero") to.set(keyOf(`another ${id}`, bucket), 0);
  else if (what === "swap") to.set(key, there).set(otherKey, here);
  else if (what === "move") to.set(keyOf(id, (bucket + 1) % BUCKETS), here).set(key, 0);
  else if (what === "compensate" && here > by)
    to.set(key, here - by).set(otherKey, (to.get(otherKey) ?? 0) + by);
}

test.each(["day", "hour"] as const)(
  "exactly the differences of a plain comparison are found, by %s",
  async (stride) => {
    const start = "2026-02-01T00:00:00Z";
    const end = new Date(Date.parse(start) + BUCKETS * STRIDE_MS[stride]).toISOString();
    const window = windowOf(stride, start, end);
    const instantOf = (bucket: number) => window.start + bucket * STRIDE_MS[stride];
    const dataStart = Date.parse("2026-01-05T00:00:00Z");
    const { store, reader, sourceId } = await setupSource(
      { workspaceIds: [WORKSPACE], dataStart },
      { isStateTrue: false },
    );
    const base: Side = new Map(
      IDS.flatMap((id, i) =>
        Array.from({ length: BUCKETS }, (_, b) => [keyOf(id, b), 1 + ((i * 7 + b) % 60)]),
      ),
    );
    const all = [...IDS, ...IDS.map((id) => `another ${id}`)];
    await loadRows(store, {
      sourceId,
      groupBy: "project",
      workspaceId: WORKSPACE,
      window,
      rows: all.map((id) => [new Date(window.start).toISOString(), id, 1]),
    });
    const scopeIds = await scopesOf(store.db, {
      sourceId,
      groupBy: "project",
      stride,
      workspaceIds: [WORKSPACE],
    });
    const table = stride === "hour" ? "usage.hourly_record" : "usage.dated_record";
    const bucketStart =
      stride === "hour" ? "to_timestamp(b.seconds)" : "(to_timestamp(b.seconds) AT TIME ZONE 'UTC')::date";
    await reader.query("SET session_replication_role = replica");

    async function keep(rows: Side): Promise<void> {
      const entries = [...rows].map(([key, traces]) => ({ ...partsOf(key), traces }));
      await reader.query(`TRUNCATE usage.difference, usage.reconciled; DELETE FROM ${table}`);
      await reader.query(
        `INSERT INTO ${table} (series_id, bucket_start, traces)
         SELECT series_id, ${bucketStart}, b.traces
         FROM unnest($1::text[], $2::bigint[], $3::bigint[]) b (id, seconds, traces)
         JOIN usage.entity e ON e.external_id = b.id AND e.dimension = 'project'
         JOIN usage.series s ON s.entity_id = e.entity_id AND s.scope_id = $4`,
        [
          entries.map(({ id }) => id),
          entries.map(({ bucket }) => instantOf(bucket) / 1000),
          entries.map(({ traces }) => traces),
          scopeIds[0],
        ],
      );
    }

    async function found() {
      const { rows } = await reader.query(
        `SELECT external_id AS id, extract(epoch FROM period_start)::bigint AS seconds, kind,
                stored_traces::text AS stored, other_traces::text AS exported
         FROM usage.difference WHERE state = 'open'`,
      );
      return rows
        .map((row) => [row.id, Number(row.seconds) * 1000, row.kind, row.stored, row.exported].join(" | "))
        .sort();
    }

    let differed = 0;
    await fc.assert(
      fc.asyncProperty(drawn, async ({ changes, splits, order }) => {
        const sides = { stored: new Map(base), exported: new Map(base) };
        for (const one of changes) apply(sides, one);
        await keep(sides.stored);
        const rows = [...sides.exported].map(([key, traces]) => ({ ...partsOf(key), traces }));
        for (const split of splits) {
          const row = rows[split % rows.length] as (typeof rows)[number];
          if (row.traces < 2) continue;
          const part = Math.floor(row.traces / 2);
          row.traces -= part;
          rows.push({ ...row, traces: part });
        }
        if (order !== "bucket") rows.sort((a, b) => (a.id < b.id ? -1 : 1));
        else rows.sort((a, b) => a.bucket - b.bucket);
        if (order === "id backwards") rows.reverse();
        let line = 1;
        const exported = rows.map(
          ({ id, bucket, traces }): ExportRow => ({
            bucketStart: instantOf(bucket),
            bucketEnd: instantOf(bucket + 1),
            workspaceId: null,
            dimensionId: id,
            dimensionName: null,
            traces,
            line: ++line,
          }),
        );
        expect(exported.length).toBeGreaterThan(1_000);
        const result = await compareExport(store, {
          sourceId,
          groupBy: "project",
          window,
          workspaceIds: [WORKSPACE],
          scopeIds,
          whole: true,
          fetchToken: await drawFetchToken(store.db),
          rows: async function* () {
            for (let from = 0; from < exported.length; from += 300) yield exported.slice(from, from + 300);
          },
        });
        const expected = differencesOf(sides);
        differed += expected.length > 0 ? 1 : 0;
        expect(await found()).toEqual(
          expected
            .map(({ id, bucket, kind, stored, exported: amount }) =>
              [id, instantOf(bucket), kind, stored ?? "", amount ?? ""].join(" | "),
            )
            .sort(),
        );
        const unstored = expected.filter(({ kind }) => kind === "missing_in_store").length;
        expect(result).toMatchObject({ outcome: "compared", compared: sides.stored.size + unstored });
      }),
      { numRuns: RUNS, seed: 20_261_123 },
    );
    expect(differed).toBeGreaterThan(RUNS / 4);
    expect(differed).toBeLessThan(RUNS);
  },
);

function partsOf(key: string): { id: string; bucket: number } {
  const at = key.indexOf(" ");
  return { bucket: Number(key.slice(0, at)), id: key.slice(at + 1) };
}

function differencesOf({ stored, exported }: { stored: Side; exported: Side }) {
  return [...new Set([...stored.keys(), ...exported.keys()])].flatMap((key) => {
    const [a, b] = [stored.get(key), exported.get(key)];
    if ((a ?? 0) === (b ?? 0)) return [];
    const kind =
      a === undefined ? "missing_in_store" : b === undefined ? "missing_in_export" : "traces_differ";
    return [{ ...partsOf(key), kind, stored: a, exported: b }];
  });
}

import fc from "fast-check";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { createSource, type StoreBundle } from "../integration/store/setup.ts";
import { ALL_DUE, KEEP_PROOF } from "../support/by-hand.ts";
import { now } from "../support/clock.ts";

const DAYS = 45;
export const WORKSPACES = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"];

const stretches = <T>(...values: readonly T[]) =>
  fc.array(
    fc.tuple(
      fc.integer({ min: 1, max: 12 }),
      fc.constantFrom<(T | undefined)[]>(undefined, ...values, ...values),
    ),
    { minLength: 8, maxLength: 14 },
  );
const bucket = [fc.nat({ max: 60 }), fc.nat({ max: 23 })] as const;
const scopeState = fc.record({
  coverage: stretches("final", "final", "final", "provisional"),
  failures: fc.oneof(fc.constant([]), stretches("failed", "unverified", undefined, undefined)),
  reconciled: stretches("reconciled"),
  matched: stretches("matched"),
  differences: fc.array(fc.tuple(...bucket, fc.constantFrom("open", "closed")), {
    minLength: 4,
    maxLength: 8,
  }),
  totals: fc.array(fc.tuple(fc.nat({ max: 40 }), fc.integer({ min: 1, max: 4 })), { maxLength: 2 }),
  records: fc.array(fc.tuple(...bucket, fc.nat({ max: 2 })), { minLength: 4, maxLength: 20 }),
});
type ScopeState = typeof scopeState extends fc.Arbitrary<infer T> ? T : never;
export const state = fc.record({
  days: fc.array(scopeState, { minLength: 4, maxLength: 4 }),
  hours: fc.array(scopeState, { minLength: 4, maxLength: 4 }),
  facts: fc.subarray(["no_day", "no_hour"]),
  hourlyDays: fc.constantFrom(1, 8, 60),
});
type State = typeof state extends fc.Arbitrary<infer T> ? T : never;

/** Begins ten days before the data start, and may end after today. */
export async function write(bundle: StoreBundle, given: State): Promise<void> {
  const dataStart = floorToGrid(now(), DAY_MS) - DAYS * DAY_MS;
  const sourceId = await createSource(bundle, { workspaceIds: WORKSPACES, dataStart });
  const { reader } = bundle;
  await reader.query("UPDATE usage.source SET hourly_hours = $1", [given.hourlyDays * 24]);
  await reader.query(
    `INSERT INTO usage.entity (source_id, dimension, external_id) SELECT $1, 'user', 'u' || n FROM generate_series(1, 2) n`,
    [sourceId],
  );
  const { rows } = await reader.query<{ scope_id: number; stride: "day" | "hour"; series: number[] }>(`
    WITH s AS (
      INSERT INTO usage.series (scope_id, entity_id)
      SELECT c.scope_id, e.entity_id FROM usage.trace_scope c, usage.entity e
      WHERE c.stride IN ('day', 'hour') AND c.group_by IN ('workspace', 'user') AND e.dimension = 'user' RETURNING *
    )
    SELECT scope_id, stride, array_agg(series_id) AS series FROM s JOIN usage.trace_scope USING (scope_id) GROUP BY 1, 2 ORDER BY 2, 1`);
  const scopes = rows.map(({ scope_id, stride, series }, n) =>
    rowsOf(
      { scopeId: scope_id, stride, series, dataStart },
      given[stride === "day" ? "days" : "hours"][n % 4] as ScopeState,
    ),
  );
  const facts = given.facts.map((fact) => ({ source_id: sourceId, fact, evidence: "test" }));
  for (const table of TABLES) {
    const created = table === "source_fact" ? facts : scopes.flatMap((one) => one[table] ?? []);
    if (created.length === 0) continue;
    const columns = Object.keys(created[0] as object).join();
    await reader.query(
      `INSERT INTO usage.${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(null::usage.${table}, $1)
       ON CONFLICT DO NOTHING`,
      [JSON.stringify(created)],
    );
  }
  await reader.query(`${KEEP_PROOF}; ${ALL_DUE}`);
}

const TABLES = [
  ...(["source_fact", "dated_record", "hourly_record", "failure", "reconciled", "matched_total"] as const),
  ...(["difference", "coverage"] as const),
];

function rowsOf(
  {
    scopeId: scope_id,
    stride,
    series,
    dataStart,
  }: { scopeId: number; stride: "day" | "hour"; series: number[]; dataStart: number },
  given: ScopeState,
): Partial<Record<(typeof TABLES)[number], object[]>> {
  const isDay = stride === "day";
  // Hours in stretches of five, so that they cut days.
  const unit = isDay ? DAY_MS : 5 * HOUR_MS;
  const first = dataStart + (isDay ? -10 : 30) * DAY_MS;
  const time = (ms: number) => new Date(ms).toISOString();
  const part = (start: number, end: number) => ({
    scope_id,
    period_start: time(start),
    period_end: time(end),
  });
  const placed = <T>(parts: readonly (readonly [number, T | undefined])[]) => {
    let end = first;
    return parts.flatMap(([length, value]) => {
      const start = end;
      end += length * unit;
      return value === undefined ? [] : [{ start, end, value, ...part(start, end) }];
    });
  };
  const bucketOf = (day: number, hour: number) => first + day * DAY_MS + (isDay ? 0 : hour * HOUR_MS);
  const loaded = placed(given.coverage);
  const fetchedAt = time(now());
  const fetched = { fetch_number: 1, fetched_at: fetchedAt };
  const records = given.records.flatMap(([day, hour, traces]) => {
    const at = bucketOf(day, hour);
    const length = isDay ? DAY_MS : HOUR_MS;
    if (!loaded.some(({ start, end }) => start <= at && at + length <= end)) return [];
    return [{ series_id: series[hour % 2], bucket_start: isDay ? time(at).slice(0, 10) : time(at), traces }];
  });
  const kept = new Map(records.toReversed().map((one) => [`${one.series_id} ${one.bucket_start}`, one]));
  const tracedIn = (start: number, end: number) =>
    [...kept.values()]
      .filter(
        ({ traces, bucket_start }) =>
          traces > 0 && start <= Date.parse(bucket_start) && Date.parse(bucket_start) < end,
      )
      .map(({ bucket_start }) => Date.parse(bucket_start))
      .map((at) => `[${time(at)},${time(at + (isDay ? DAY_MS : HOUR_MS))})`);
  const strip = ({ start: _, end: __, value: ___, ...row }: ReturnType<typeof placed>[number]) => row;
  return {
    [isDay ? "dated_record" : "hourly_record"]: records,
    coverage: loaded.map((one) => ({
      ...strip(one),
      final: one.value === "final" && one.end <= now(),
      ...fetched,
      traced: `{${tracedIn(one.start, one.end).join()}}`,
    })),
    failure: placed(given.failures).map((one) => ({
      ...strip(one),
      state: one.value,
      code: "network",
      message: "cut",
      attempts: 1,
      fetch_number: 1,
      failed_at: fetchedAt,
      retry_at: fetchedAt,
    })),
    reconciled: placed(given.reconciled).map((one) => ({
      ...strip(one),
      fetch_number: 1,
      reconciled_at: fetchedAt,
    })),
    matched_total: !isDay
      ? []
      : placed(given.matched).map((one) => ({
          ...strip(one),
          fetch_number: 1,
          matched_at: fetchedAt,
          total_start: one.period_start,
          total_end: one.period_end,
        })),
    difference: [
      ...given.differences.map(([day, hour, how]) => ({
        compared_with: "export",
        external_id: "u1",
        ...part(bucketOf(day, hour), bucketOf(day, hour) + (isDay ? DAY_MS : HOUR_MS)),
        kind: "traces_differ",
        stored_traces: 1,
        other_traces: 2,
        state: how,
        ...fetched,
        found_at: fetchedAt,
        closed_at: how === "closed" ? fetchedAt : null,
      })),
      ...(isDay ? given.totals : []).map(([day, length]) => ({
        ...part(first + day * DAY_MS, first + (day + length) * DAY_MS),
        compared_with: "stride_total",
        kind: "stride_total",
        external_id: "",
        state: "platform_disagrees",
        ...fetched,
        found_at: fetchedAt,
      })),
    ],
  };
}

import { expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { METER, METERS, type Meter } from "../../../src/core/domain/usage/meter.ts";
import type { GroupBy } from "../../../src/core/domain/usage/record.ts";
import { loadedMeters, scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { keepFindings, knownFindings } from "../../../src/core/store/proof/control-findings.ts";
import type { Finding } from "../../../src/core/store/proof/write-differences.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../../support/store.ts";
import { setupSource } from "./setup.ts";

const ONE = "0b7c7f3e-0000-4000-8000-000000000001";
const OTHER = "0b7c7f3e-0000-4000-8000-000000000002";
const START = Date.parse("2026-02-01T00:00:00Z");
const day = (nth: number) => START + nth * DAY_MS;
const ALL = { start: day(0), end: day(60) };

async function setupFindings() {
  const dataStart = Date.parse("2026-01-05T00:00:00Z");
  const bundle = await setupSource({ workspaceIds: [ONE, OTHER], dataStart });
  const { store, sourceId } = bundle;
  const scopes = (groupBy: GroupBy, meter: Meter = "traces") =>
    scopesOf(store.db, { sourceId, meter, groupBy, stride: "day", workspaceIds: [ONE, OTHER] }) as Promise<
      [number, number]
    >;
  const known = (given: Partial<Parameters<typeof knownFindings>[1]> = {}) =>
    knownFindings(store.db, { sourceId, range: ALL, ...given });
  const kept = async () => {
    const { rows } = await bundle.reader.query<{ of: string }>(
      `SELECT concat_ws(' ', scope_id, kind, external_id, stored_traces, other_traces, state, fetch_number,
                        CASE WHEN closed_at IS NULL THEN 'left' ELSE 'ended' END) AS of
       FROM usage.difference ORDER BY scope_id, kind, period_start, external_id`,
    );
    return rows.map((row) => row.of);
  };
  return { ...bundle, scopes, known, kept };
}

function finding(scopeId: number, given: Partial<Finding> = {}): Finding {
  return {
    scopeId,
    kind: "stride_total",
    state: "platform_disagrees",
    start: day(0),
    end: day(7),
    dimensionId: "a",
    measure: "traces",
    storedTraces: 1,
    controlTraces: 2,
    ...given,
  };
}

test("known findings are those left in a part of time, by meter, dimension, workspace and time", async () => {
  const { store, sourceId, scopes, known } = await setupFindings();
  const [[project], [workspace], [longlived]] = [
    await scopes("project"),
    await scopes("workspace"),
    await scopes("workspace", "longlived"),
  ];
  const keep = (one: Finding) => keepFindings(store, { kind: one.kind, compared: [], fetchNumber: 1 }, [one]);
  await keep(finding(longlived, { kind: "tier_total", start: day(0), end: day(1) }));
  await keep(finding(longlived, { kind: "tier_exceeds", start: day(2), end: day(3) }));
  await keep(finding(project, { kind: "grouping_total", start: day(3), end: day(4), state: "unattributed" }));
  await keep(finding(workspace, { start: day(20), end: day(27) }));
  await keep(finding(workspace, { kind: "provider_total", start: day(0), end: day(28) }));
  const named = async (given: Parameters<typeof known>[0] = {}) =>
    (await known(given)).map(({ meter, kind, groupBy, start }) => {
      return `${meter} ${kind} ${groupBy} ${(start - START) / DAY_MS}`;
    });
  expect(await named()).toEqual([
    "traces stride_total workspace 20",
    "traces grouping_total project 3",
    "longlived tier_total workspace 0",
    "longlived tier_exceeds workspace 2",
  ]);
  expect(await named({ kinds: ["provider_total"] })).toEqual(["traces provider_total workspace 0"]);
  expect(await named({ range: { start: day(1), end: day(3) } })).toEqual([
    "longlived tier_exceeds workspace 2",
  ]);
  expect(await named({ range: { start: day(26), end: day(60) } })).toEqual([
    "traces stride_total workspace 20",
  ]);
  expect(await known({ sourceId: sourceId + 1 })).toEqual([]);
});

test("a meter is loaded as soon as any of its days is", async () => {
  const { store, sourceId } = await setupFindings();
  const about = { sourceId, groupBy: "project", workspaceId: ONE, rows: [] } as const;
  const window = windowOf("day", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z");
  await loadRows(store, {
    ...about,
    meter: "shortlived",
    window: windowOf("hour", "2026-02-01T00:00:00Z", "2026-02-01T02:00:00Z"),
  });
  expect(await loadedMeters(store.db, sourceId)).toEqual([]);
  await loadDeploymentRows(store, { ...about, window });
  await loadRows(store, { ...about, meter: "longlived", window });
  expect(await loadedMeters(store.db, sourceId)).toEqual(["longlived", "deployments"]);
  await loadRows(store, { ...about, window });
  await loadRows(store, { ...about, meter: "shortlived", window });
  expect(await loadedMeters(store.db, sourceId)).toEqual(METERS.filter((meter) => METER[meter].isExported));
  expect(await loadedMeters(store.db, sourceId + 1)).toEqual([]);
});

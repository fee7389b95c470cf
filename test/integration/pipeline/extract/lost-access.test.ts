import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { differences, inLedger, inStore } from "../../../support/tables.ts";

/** A key that loses a workspace gets empty answers. The zeros that it stores until somebody notices are withdrawn. */

interface Figure {
  readonly usage_date: string;
  readonly traces: number | null;
  readonly coverage_status: string;
  readonly is_final: boolean;
}

const UNVERIFIED = { traces: null, coverage_status: "unverified", is_final: false };

const workspace = (bench: Bench, index: number) => {
  const found = bench.standin.organisation.workspaces[index];
  if (found === undefined) throw new Error("no workspace");
  return found;
};
const setReadable = (bench: Bench, index: number, readable: boolean) =>
  bench.standin.access.setReadable(workspace(bench, index), readable);
const figures = (bench: Bench, index: number) =>
  bench.sql<Figure>(
    `SELECT usage_date::text, traces, coverage_status, is_final FROM reporting.fct_usage_workspace_daily
     WHERE workspace_id = $1 ORDER BY usage_date`,
    [workspace(bench, index).id],
  );
/** Rows of any view that show a zero of the workspace beside `unverified`, or as final. */
const zeros = async (bench: Bench, index: number) => {
  const { id } = workspace(bench, index);
  const [row] = await bench.sql<Record<string, number>>(
    `SELECT (SELECT count(*) FROM reporting.fct_usage_workspace_daily WHERE workspace_id = $1 AND traces = 0)::integer AS days,
            (SELECT count(*) FROM reporting.fct_usage_workspace_hourly WHERE workspace_id = $1 AND traces = 0)::integer AS hours,
            (SELECT count(*) FROM reporting.fct_usage_workspace_monthly WHERE workspace_id = $1 AND traces = 0)::integer AS months,
            (SELECT count(*) FROM reporting.usage_coverage_daily WHERE workspace_id = $1 AND status = 'empty')::integer AS empty`,
    [id],
  );
  return row;
};
const NONE = { days: 0, hours: 0, months: 0, empty: 0 };
const days = (bench: Bench, workspaceIds: readonly string[]) =>
  inLedger(bench.standin, {
    stride: "day",
    range: { start: bench.dataStart, end: bench.today + DAY_MS },
    workspaceIds,
  });

test.each([true, false])(
  "a workspace lost between contact and fetches is unverified, not zero (listing %s), and comes back by itself",
  async (listing) => {
    const bench = await setup({ workspaces: [0, 1], standin: { listing } });
    const ids = bench.workspaceIds;
    await bench.sync({
      opened: (source) => {
        // Without a listing the first proof is asked for with the first fetch: a proof of before is what was lost.
        if (listing) setReadable(bench, 1, false);
        else {
          const { fresh } = source.access;
          source.access.fresh = async () => {
            await fresh();
            setReadable(bench, 1, false);
          };
        }
      },
    });
    expect(await figures(bench, 1)).toEqual(
      Array.from({ length: 7 }, (_, i) => ({
        usage_date: new Date(bench.dataStart + i * DAY_MS).toISOString().slice(0, 10),
        ...UNVERIFIED,
      })),
    );
    expect(await zeros(bench, 1)).toEqual(NONE);
    expect(differences(await inStore(bench, ["day"]), days(bench, ids.slice(0, 1)))).toEqual([]);

    // The next syncs leave it so, and say it once.
    await bench.sync();
    await bench.sync();
    expect(await zeros(bench, 1)).toEqual(NONE);
    const told = bench.logs.filter((line) => line.code === "zeros_withdrawn");
    expect(told).toMatchObject([{ workspaceId: ids[1], zeros: 7 * 4 }]);
    expect(bench.logs.filter((line) => line.code === "workspace_unlisted")).toHaveLength(listing ? 1 : 0);

    // Back, it is due with the next proof: that of first contact, or that of the first fetch.
    setReadable(bench, 1, true);
    await bench.sync();
    if (!listing) await bench.sync();
    expect(differences(await inStore(bench, ["day"]), days(bench, ids))).toEqual([]);
    expect(await bench.sql("SELECT * FROM usage.failure")).toEqual([]);
    expect(await bench.sql("SELECT FROM reporting.fct_usage_workspace_daily WHERE is_final")).toHaveLength(6);
  },
);

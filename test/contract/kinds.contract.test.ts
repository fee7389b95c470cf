import { parse } from "csv-parse/sync";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Platform, platform } from "./reach.ts";

/**
 * Kinds and tiers of granular usage as usage-etl relies on them (docs/platform.md, Contracts). Runs on the stand-in, or on
 * the platform that the environment names; a server that knows neither has nothing to test but how it says so.
 */
const DAY = 86_400_000;
const PATH = "/api/v1/orgs/current/billing/granular-usage";
const LOCAL = (process.env.USAGE_CONTRACT_BASE_URL ?? "") === "";
const MEASURES = ["nodes_executed", "agent_runs", "agent_uptime_seconds"] as const;

const amount = z.int().min(0);
const usageSchema = z.object({
  stride: z.object({ days: z.int().optional(), hours: z.int().optional() }),
  usage: z.array(
    z.object({
      dimensions: z.record(z.string(), z.unknown()),
      traces: amount.default(0),
      nodes_executed: amount,
      agent_runs: amount,
      agent_uptime_seconds: amount,
    }),
  ),
});
type Usage = z.output<typeof usageSchema>;

let the: Platform;
let knows = false;

const get = (more: Record<string, string>, csv = ""): Promise<Response> => {
  const query = new URLSearchParams({
    start_time: new Date(the.final - 14 * DAY).toISOString(),
    end_time: new Date(the.final).toISOString(),
    ...more,
  });
  for (const id of the.workspaces) query.append("workspace_ids", id);
  return fetch(`${the.url}${PATH}${csv}?${query}`, { headers: { "x-api-key": the.apiKey } });
};
const usage = async (more: Record<string, string>): Promise<Usage> =>
  usageSchema.parse(await (await get(more)).json());
const total = ({ usage: records }: Usage, measure: "traces" | (typeof MEASURES)[number]): number =>
  records.reduce((all, record) => all + record[measure], 0);
const DEPLOYMENTS = { kind: "langsmith_deployments" };

describe("kinds and tiers", () => {
  beforeAll(async () => {
    the = await platform(LOCAL ? { contract: "day-granular" } : {});
    const requested = await get({ kind: "traces" });
    knows = requested.ok && usageSchema.safeParse(await requested.json()).success;
    expect(LOCAL && !knows).toBe(false);
  });
  afterAll(() => the.close());

  test("a record has the measures of both kinds, and those of the other kind are 0", async ({ skip }) => {
    if (!knows) skip("this server knows no kinds");
    const traces = await usage({ kind: "traces" });
    for (const measure of MEASURES) expect(total(traces, measure)).toBe(0);
    expect(traces).toEqual(await usage({}));
    expect(total(await usage(DEPLOYMENTS), "traces")).toBe(0);
  });

  test("a kind's export has its measures as columns, and the same sums", async ({ skip }) => {
    if (!knows) skip("this server knows no kinds");
    const lines = async (more: Record<string, string>): Promise<Record<string, string>[]> =>
      parse(await (await get(more, "/export")).text(), { columns: true });
    const sums = new Set<string>();
    for (const by of ["workspace", "project", "user", "api_key"]) {
      const json = await usage({ ...DEPLOYMENTS, group_by: by });
      sums.add(MEASURES.map((measure) => total(json, measure)).join(" "));
      const rows = await lines({ ...DEPLOYMENTS, group_by: by });
      expect(rows).toHaveLength(json.usage.length);
      for (const [i, column] of ["Nodes Executed", "Agent Runs", "Agent Uptime (seconds)"].entries()) {
        const sum = rows.reduce((all, row) => all + Number(row[column]), 0);
        expect(sum).toBe(total(json, MEASURES[i] as (typeof MEASURES)[number]));
      }
      for (const row of rows) expect(row).not.toHaveProperty("Traces");
    }
    if (LOCAL) expect([...sums]).toEqual([expect.stringMatching(/^[1-9]\d* [1-9]\d* [1-9]\d*$/)]);
    const long = await lines({ trace_tier: "longlived" });
    expect(long.reduce((all, row) => all + Number(row.Traces), 0)).toBe(
      total(await usage({ trace_tier: "longlived" }), "traces"),
    );
  });

  test("long-lived and short-lived traces are all traces, in every dimension", async ({ skip }) => {
    if (!knows) skip("this server knows no tiers");
    for (const by of ["workspace", "project", "user", "api_key"]) {
      const [all, long, short] = await Promise.all(
        [{}, { trace_tier: "longlived" }, { trace_tier: "shortlived" }].map(async (tier) =>
          total(await usage({ group_by: by, ...tier }), "traces"),
        ),
      );
      expect((long ?? 0) + (short ?? 0)).toBe(all);
    }
  });

  test("with deployments trace_tier is ignored as a filter, and refused as a dimension", async ({ skip }) => {
    if (!knows) skip("this server knows no kinds");
    expect(await usage({ ...DEPLOYMENTS, trace_tier: "longlived" })).toEqual(await usage(DEPLOYMENTS));
    expect((await get({ ...DEPLOYMENTS, group_by: "trace_tier" })).status).toBe(400);
  });

  test("a deployment is no traced project", async ({ skip }) => {
    if (!knows) skip("this server knows no kinds");
    const ids = async (more: Record<string, string>) =>
      (await usage({ ...more, group_by: "project" })).usage.map(({ dimensions }) => dimensions.project_id);
    const traced = new Set(await ids({}));
    for (const id of await ids(DEPLOYMENTS)) if (id != null) expect(traced).not.toContain(id);
  });
});

test.each(LOCAL ? (["ignore", "400", "422"] as const) : (["as it is"] as const))(
  "a server without kinds refuses the parameters or answers without the measures (%s)",
  async (unknownParameters) => {
    the = await platform(
      LOCAL ? { contract: "tiered", unknownParameters: unknownParameters as "ignore" } : {},
    );
    try {
      for (const more of [DEPLOYMENTS, { trace_tier: "longlived" }]) {
        const response = await get(more as Record<string, string>);
        if (response.ok) {
          const records = ((await response.json()) as { usage: object[] }).usage;
          const known = records.filter((record) => "agent_runs" in record);
          expect([0, records.length]).toContain(known.length);
        } else expect([400, 422]).toContain(response.status);
      }
    } finally {
      await the.close();
    }
  },
);

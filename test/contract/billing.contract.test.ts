import { parse } from "csv-parse/sync";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Platform, platform } from "./reach.ts";

/**
 * The billing API as usage-etl relies on it (docs/platform.md, Contracts to Requests). Runs on the stand-in, or on the
 * platform that the environment names. What is not known of the platform is not tested.
 */
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PATH = "/api/v1/orgs/current/billing/granular-usage";
const LOCAL = (process.env.USAGE_CONTRACT_BASE_URL ?? "") === "";

const stride = z.object({ days: z.int().optional(), hours: z.int().optional() });
const usageSchema = z.object({
  stride,
  usage: z.array(
    z.object({
      time_bucket: z.string().nullable().optional(),
      dimensions: z.record(z.string(), z.unknown()),
      traces: z.int().min(0).default(0),
    }),
  ),
});
const validationError = z.object({
  detail: z
    .array(z.object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() }))
    .min(1),
});

/** Keys of a record by dimension, and the CSV columns filled for each (docs/platform.md, Records and CSV export). */
const GROUPINGS: Record<string, { keys: string[]; columns: string[] }> = {
  workspace: { keys: ["workspace_id", "workspace_name"], columns: ["Workspace ID", "Workspace Name"] },
  project: { keys: ["project_id", "project_name"], columns: ["Project ID", "Project Name"] },
  user: { keys: ["user_id", "user_email"], columns: ["User ID", "User Email"] },
  api_key: { keys: ["api_key_short_key"], columns: ["API Key Short Key"] },
};
const COLUMNS = [
  "Time Bucket Start",
  "Time Bucket End",
  ...Object.values(GROUPINGS).flatMap(({ columns }) => columns),
  "Traces",
];

describe.each(LOCAL ? (["tiered", "day-granular"] as const) : (["as it is"] as const))(
  "billing, %s",
  (contract) => {
    let the: Platform;
    beforeAll(async () => {
      the = await platform(contract === "as it is" ? {} : { contract });
    });
    afterAll(() => the.close());

    const get = (query: [string, string][], { path = PATH, apiKey = the.apiKey } = {}): Promise<Response> =>
      fetch(`${the.url}${path}?${new URLSearchParams(query)}`, { headers: { "x-api-key": apiKey } });
    const query = (length: number, by?: string, workspaces = the.workspaces): [string, string][] => [
      ["start_time", new Date(the.final - length).toISOString()],
      ["end_time", new Date(the.final).toISOString()],
      ...workspaces.map((id): [string, string] => ["workspace_ids", id]),
      ...(by === undefined ? [] : [["group_by", by] as [string, string]]),
    ];
    const usage = async (length: number, by?: string, workspaces?: readonly string[]) =>
      usageSchema.parse(await (await get(query(length, by, workspaces))).json());
    const csv = async (length: number, by: string): Promise<Record<string, string>[]> =>
      parse(await (await get(query(length, by), { path: `${PATH}/export` })).text(), { columns: true });
    const total = ({ usage }: z.output<typeof usageSchema>): number =>
      usage.reduce((all, r) => all + r.traces, 0);

    test.each([
      [DAY, 1],
      [31 * DAY, 1],
      [32 * DAY, 7],
      [93 * DAY, 7],
      [94 * DAY, 30],
      [366 * DAY, 30],
      [367 * DAY, 365],
    ])("a range of %d ms is answered in strides of %d days", async (length, days) => {
      const { stride } = await usage(length);
      expect([stride.days, stride.hours ?? 0]).toEqual([days, 0]);
    });

    test("a range of 23 hours is answered in hours, or as the whole day it touches", async () => {
      const { stride, usage: records } = await usage(23 * HOUR);
      const hourly = (stride.hours ?? 0) === 1;
      expect(hourly ? (stride.days ?? 0) : stride.days).toBe(hourly ? 0 : 1);
      const grid = hourly ? HOUR : DAY;
      for (const { time_bucket } of records) expect(Date.parse(`${time_bucket}`) % grid).toBe(0);
    });

    test("days lie on the UTC grid, inside the range", async () => {
      const { usage: records } = await usage(14 * DAY);
      for (const { time_bucket } of records) {
        const start = Date.parse(`${time_bucket}`);
        expect(start % DAY).toBe(0);
        expect(start).toBeGreaterThanOrEqual(the.final - 14 * DAY);
        expect(start).toBeLessThan(the.final);
      }
    });

    test.each(Object.entries(GROUPINGS))(
      "group_by=%s: its dimension keys, its CSV columns",
      async (by, expected) => {
        const { usage: records } = await usage(7 * DAY, by);
        for (const { dimensions } of records)
          expect(Object.keys(dimensions)).toEqual(expect.arrayContaining(expected.keys));
        const lines = await csv(7 * DAY, by);
        expect(lines).toHaveLength(records.length);
        const others = Object.values(GROUPINGS)
          .flatMap(({ columns }) => columns)
          .filter((column) => !expected.columns.includes(column));
        for (const line of lines) {
          expect(Object.keys(line)).toEqual(COLUMNS);
          expect(others.map((column) => line[column])).toEqual(others.map(() => ""));
        }
        const sums = lines.reduce((all, line) => all + Number(line.Traces), 0);
        expect(sums).toBe(records.reduce((all, { traces }) => all + traces, 0));
      },
    );

    test("without group_by the response is by workspace", async () => {
      expect(await usage(7 * DAY)).toEqual(await usage(7 * DAY, "workspace"));
    });

    test("weeks hold the same traces as their days, and every dimension the same as workspaces", async () => {
      const weeks = total(await usage(35 * DAY));
      const days = await Promise.all(
        [0, 1, 2, 3, 4].map(async (week) => {
          const end = the.final - week * 7 * DAY;
          const times: [string, string][] = [
            ["start_time", new Date(end - 7 * DAY).toISOString()],
            ["end_time", new Date(end).toISOString()],
          ];
          return total(usageSchema.parse(await (await get([...times, ...query(0).slice(2)])).json()));
        }),
      );
      expect(days.reduce((a, b) => a + b, 0)).toBe(weeks);
      for (const by of Object.keys(GROUPINGS)) expect(total(await usage(35 * DAY, by))).toBe(weeks);
    });

    test("several workspaces are the sum of each, and an unreadable one is left out without an error", async () => {
      const each = await Promise.all(
        the.workspaces.map(async (id) => total(await usage(7 * DAY, "project", [id]))),
      );
      expect(each.reduce((a, b) => a + b, 0)).toBe(total(await usage(7 * DAY, "project")));
      const unknown = await usage(7 * DAY, "workspace", ["00000000-0000-4000-8000-000000000000"]);
      expect(unknown.usage).toEqual([]);
    });

    test("statistics name the workspace that is asked for, and another organization's are refused", async () => {
      const statistics = (workspaceId: string) =>
        fetch(`${the.url}/api/v1/workspaces/current/stats`, {
          headers: { "x-api-key": the.apiKey, "x-tenant-id": workspaceId },
        });
      for (const id of the.workspaces)
        expect(await (await statistics(id)).json()).toMatchObject({ tenant_id: id });
      expect((await statistics("00000000-0000-4000-8000-000000000000")).ok).toBe(false);
    });

    test("there is no usage on cloud before 2026-01-05", async () => {
      const before: [string, string][] = [
        ["start_time", "2025-12-20T00:00:00Z"],
        ["end_time", "2026-01-05T00:00:00Z"],
      ];
      expect(total(usageSchema.parse(await (await get([...before, ...query(0).slice(2)])).json()))).toBe(0);
    });

    test("a wrong key gets 401, and a wrong query 422 with loc, msg and type", async () => {
      expect((await get(query(DAY), { apiKey: "wrong" })).status).toBe(401);
      const good = query(DAY);
      const wrong: [string, string][][] = [
        good.filter(([name]) => name !== "end_time"),
        good.filter(([name]) => name !== "workspace_ids"),
        good.map(([name, value]) => [name, name === "start_time" ? "yesterday" : value]),
        [...good.filter(([name]) => name !== "workspace_ids"), ["workspace_ids", "not-a-uuid"]],
      ];
      for (const one of wrong) {
        const response = await get(one);
        expect(response.status).toBe(422);
        validationError.parse(await response.json());
      }
    });
  },
);

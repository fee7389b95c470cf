import { Langsmith } from "langsmith-0-12";
import { expect, onTestFinished, test } from "vitest";
import { fromUnitText } from "../../src/core/domain/usage/amount.ts";
import { startStandin } from "../../src/features/standin/server.ts";

const TOTALS = { include_totals: true, include_daily: true };

/** Sandbox costs (docs/platform.md) for their real client: it follows the stand-in's pages to their end, and reads its amounts. */
test.each(["HOUR", "RESOURCE"] as const)(
  "the platform's client reads all pages by %s",
  async (granularity) => {
    const standin = await startStandin({ sandboxes: "on", now: () => Date.parse("2026-11-02T05:30:00Z") });
    onTestFinished(() => standin.close());
    const [workspace] = standin.organisation.workspaces;
    const workspaceId = workspace?.id ?? "";
    const client = new Langsmith({
      apiKey: standin.apiKey,
      baseURL: standin.url,
      defaultHeaders: { "X-Tenant-Id": workspaceId },
      maxRetries: 0,
    });
    const sums = { lcu: 0, lsu: 0 };
    const [start, end] = ["2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"];
    const query = { start_time: start, end_time: end, granularity, page_size: 50, ...TOTALS };
    for await (const { lcu, lsu } of client.sandboxes.listUsageCosts(query)) {
      sums.lcu += fromUnitText(lcu) ?? Number.NaN;
      sums.lsu += fromUnitText(lsu) ?? Number.NaN;
    }
    const range = { workspaceId, start: Date.parse(start), end: Date.parse(end) };
    const expected = { lcu: 0, lsu: 0 };
    for (const { lcu, lsu } of standin.sandboxLedger.hours(range)) {
      expected.lcu += lcu;
      expected.lsu += lsu;
    }
    expect(expected.lcu).toBeGreaterThan(0);
    expect(sums).toEqual(expected);
  },
);

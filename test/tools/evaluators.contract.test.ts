import { Langsmith } from "langsmith-0-12";
import { expect, onTestFinished, test } from "vitest";
import { startStandin } from "../../src/features/standin/server.ts";

/** Evaluator spend (docs/platform.md) for its real client: it asks the stand-in by every dimension and reads its amounts. */
test.each(["evaluator", "resource", "run_rule"])("the platform's client reads spend by %s", async (by) => {
  const standin = await startStandin({ evaluators: "on", now: () => Date.parse("2026-11-02T05:30:00Z") });
  onTestFinished(() => standin.close());
  const workspaceId = standin.organisation.workspaces[0]?.id ?? "";
  const client = new Langsmith({
    apiKey: standin.apiKey,
    baseURL: standin.url,
    defaultHeaders: { "X-Tenant-Id": workspaceId },
    maxRetries: 0,
  });
  const response = await client.onlineEvaluators.spend({
    period_start: "2026-10-19",
    group_by: by,
    ...{ agent_id: "a", type: "llm", feedback_key: "f", resource_id: ["r"], tag_value_id: ["t"] },
  });
  const days = (response.groups ?? []).flatMap((group) => group.days ?? []);
  const rows = standin.evaluatorLedger.days({
    workspaceId,
    start: Date.parse("2026-10-19"),
    end: Date.parse("2026-10-26"),
  });
  const billionths = days.reduce((sum, { spend_usd = Number.NaN }) => sum + Math.round(spend_usd * 1e9), 0);
  expect(billionths).toBe(rows.reduce((sum, { spend_usd }) => sum + spend_usd, 0));
  expect(billionths).toBeGreaterThan(0);
  expect(response.period_end).toBe("2026-10-25");
});

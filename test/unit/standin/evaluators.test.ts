import { describe, expect, test } from "vitest";
import type { EvaluatorRule } from "../../../src/local/standin/engine/organisation.ts";
import type { StandinOptions } from "../../../src/local/standin/server.ts";
import { NOW, SEED, setup } from "./setup.ts";

const PATH = "/v1/platform/evaluators/spend";
const DAY = 86_400_000;
/** A Monday, two weeks before the clock's. */
const START = "2026-08-31";
const RULES = { period_start: START, group_by: "run_rule" };

interface Group {
  evaluator_id?: string;
  run_rule_id?: string;
  session_id?: string;
  dataset_id?: string;
  days: { date: string; spend_usd: number; trace_count: number }[];
  total_spend_usd: number;
  total_trace_count: number;
  prev_total_spend_usd: number;
  prev_total_trace_count: number;
  spend_limit: { limit_usd: number; utilization_pct: number; window: string } | null;
}
interface Answer {
  groups: Group[];
  period_start: string;
  period_end: string;
}
type Query = Record<string, string>;

async function bench(options: StandinOptions = {}) {
  const { standin, get } = await setup({ evaluators: "on", ...options });
  const { organisation, evaluatorLedger: ledger } = standin;
  const workspaceId = organisation.workspaces[0]?.id ?? "";
  const ask = (query: Query, headers: Query = {}) =>
    get(`${PATH}?${new URLSearchParams(query)}`, { "x-tenant-id": workspaceId, ...headers });
  const answer = async (query: Query = RULES, headers?: Query): Promise<Answer> => {
    const response = await ask(query, headers);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as Answer;
  };
  const evaluators = organisation.evaluators.filter(({ workspace }) => workspace.id === workspaceId);
  return { ask, answer, organisation, evaluators, ledger, workspaceId };
}

/** As the wire has it, to whole billionths of a dollar. */
function billionths(usd: number): number {
  const whole = Math.round(usd * 1e9);
  expect(whole / 1e9).toBe(usd);
  return whole;
}

const spendOf = (days: readonly { spend_usd: number }[]) =>
  days.reduce((sum, { spend_usd }) => sum + billionths(spend_usd), 0);
const tracesOf = (days: readonly { trace_count: number }[]) =>
  days.reduce((sum, { trace_count }) => sum + trace_count, 0);
const daysOf = ({ groups }: Answer) => groups.flatMap(({ days }) => days);

describe("evaluator spend", () => {
  test("periods that adjoin hold every day once, and each names the sum of the one before", async () => {
    const { answer, ledger, workspaceId } = await bench({ seed: SEED });
    const starts = Array.from({ length: 5 }, (_, i) => Date.parse("2026-08-13") + 7 * i * DAY);
    const answers: Answer[] = [];
    for (const start of starts)
      answers.push(
        await answer({ period_start: new Date(start).toISOString().slice(0, 10), group_by: "run_rule" }),
      );
    const rows = ledger.days({ workspaceId, start: starts[0] ?? 0, end: NOW });
    expect(spendOf(answers.flatMap(daysOf))).toBe(rows.reduce((sum, row) => sum + row.spend_usd, 0));
    const sums = (given: Answer | undefined) =>
      new Map(given?.groups.map((one) => [one.run_rule_id, one.total_spend_usd]));
    for (const [i, { groups }] of answers.entries()) {
      for (const group of groups) {
        expect(billionths(group.total_spend_usd)).toBe(spendOf(group.days));
        expect(group.total_trace_count).toBe(tracesOf(group.days));
        if (i === 0) continue;
        expect(group.prev_total_spend_usd).toBe(sums(answers[i - 1]).get(group.run_rule_id) ?? 0);
      }
    }
  });

  test("a limit is used by the spend since Monday, whatever the period", async () => {
    const { answer, evaluators } = await bench();
    const rule = evaluators[0]?.rules[0] as EvaluatorRule;
    const ofRule = async (period_start: string) =>
      (await answer({ period_start, group_by: "run_rule" })).groups.find(
        (one) => one.run_rule_id === rule.id,
      );
    rule.limitUsd = 50;
    const week = await ofRule("2026-09-14");
    const percent = (100 * (week?.total_spend_usd ?? 0)) / 50;
    expect(week?.spend_limit).toEqual({ limit_usd: 50, utilization_pct: percent, window: "weekly" });
    expect((await ofRule(START))?.spend_limit).toEqual(week?.spend_limit);
    rule.limitUsd = null;
    expect((await ofRule(START))?.spend_limit).toBeNull();
  });
});

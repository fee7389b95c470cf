import { z } from "zod";
import { PlatformError } from "../../base/errors.ts";
import { DAY_MS, floorToGrid, STRIDE_MS, type Stride, strideOfRange } from "../../domain/time/stride.ts";
import { partsOf } from "../../domain/time/window.ts";
import { fromUsd } from "../../domain/usage/amount.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import type { PlatformHttp } from "../http/http.ts";
import { readJson, responseError } from "../http/read-body.ts";
import { foreignError, refuserOf } from "../parse/response-error.ts";
import { describeValue, fromWireId, fromWireName, toWireTime } from "../parse/wire-values.ts";
import type { WorkspaceIo, WorkspaceQuery } from "./by-workspace.ts";

/** The platform's clients use the first path; its documentation has both. */
const PATHS = ["/v1/platform/evaluators/spend", "/api/v1/platform/evaluators/spend"] as const;

const PERIOD = 7 * DAY_MS;

const fields = z.record(z.string(), z.unknown());
const responseSchema = z.object({
  // Without it any other object would pass for a period without spend.
  period_start: z.string(),
  // Go omits empty fields.
  groups: z.array(fields).nullish(),
});
type Response = z.output<typeof responseSchema>;
type Fields = z.output<typeof fields>;

/**
 * Passes spend and traces of a workspace's evaluators to `onRecords`, by day or in the stride of a longer range, and their
 * rules to `onRules`. The platform has no hourly spend, so an hour gets its whole day. Errors: those of `get`;
 * `response_invalid`.
 */
export async function evaluatorSpend(
  http: PlatformHttp,
  query: WorkspaceQuery,
  io: WorkspaceIo,
): Promise<{ stride: Stride; records: number }> {
  const requested = strideOfRange(query.end - query.start);
  const stride = requested === "hour" ? "day" : requested;
  const range = { start: floorToGrid(query.start, DAY_MS), end: query.end };
  const bucketOf = (day: number) =>
    range.start + Math.floor((day - range.start) / STRIDE_MS[stride]) * STRIDE_MS[stride];
  const { groupBy, workspaceId } = query;
  let records = 0;
  let isFirst = true;
  for (const period of partsOf(range, PERIOD)) {
    const send = () => request(http, { workspaceId, start: period.start }, io);
    const groups = await (isFirst || io.sendMore === undefined ? send() : io.sendMore(send));
    isFirst = false;
    for (const { rule, days } of groups) {
      io.onRules?.([rule]);
      const spent = days.filter(({ day }) => day < period.end);
      records += spent.length;
      io.onRecords(
        spent.flatMap(({ day, spend, traces }) =>
          (
            [
              ["spend_usd", spend],
              ["evaluated_traces", traces],
            ] as const
          ).map(([measure, amount]) => ({
            bucketStart: bucketOf(day),
            workspaceId,
            dimensionId: groupBy === "workspace" ? workspaceId : rule.runRuleId,
            dimensionName: groupBy === "workspace" ? null : rule.name,
            measure,
            traces: amount,
          })),
        ),
      );
    }
  }
  return { stride, records };
}

interface Group {
  readonly rule: RunRule;
  readonly days: readonly Day[];
}

interface Day {
  /** Epoch ms. */
  readonly day: number;
  /** Billionths of a US dollar. */
  readonly spend: number;
  readonly traces: number;
}

interface Period {
  readonly workspaceId: string;
  readonly start: number;
}

/** Clients whose server has only the second path. */
const otherAddress = new WeakSet<PlatformHttp>();

async function request(http: PlatformHttp, period: Period, io: WorkspaceIo): Promise<Group[]> {
  const query = new URLSearchParams({
    period_start: toWireTime(period.start).slice(0, 10),
    group_by: "run_rule",
  });
  const { workspaceId } = period;
  const send = async (path: string) => {
    const response = await http.get({ path, query, workspaceId, signal: io.signal });
    const wire = await readJson(response, responseSchema);
    try {
      return fromWireResponse(wire, period.start);
    } catch (error) {
      throw responseError(error, response);
    }
  };
  if (otherAddress.has(http)) return send(PATHS[1]);
  try {
    return await send(PATHS[0]);
  } catch (error) {
    if (!(error instanceof PlatformError) || error.status !== 404) throw error;
    const again = () => send(PATHS[1]);
    const groups = await (io.sendMore === undefined ? again() : io.sendMore(again));
    otherAddress.add(http);
    return groups;
  }
}

function fromWireResponse({ period_start: told, groups }: Response, start: number): Group[] {
  const requested = toWireTime(start).slice(0, 10);
  if (told.slice(0, 10) !== requested)
    throw foreignError(
      `the response is about the seven days from ${describeValue(told)} on, not ${requested}`,
    );
  const seen = new Set<string>();
  return (groups ?? []).map((group, nth) => fromWireGroup(group, { nth, start, seen }));
}

function fromWireGroup(
  group: Fields,
  { nth, start, seen }: { nth: number; start: number; seen: Set<string> },
): Group {
  const refuse = refuserOf(group, `group ${nth}`, `groups.${nth}`);
  const textOf = (field: string): string | null => {
    const given = group[field] ?? null;
    return given === null || typeof given === "string" ? given : refuse(field, "not a text");
  };
  const idOf = (field: string): string =>
    fromWireId(textOf(field)) ?? refuse(field, "which cannot be kept as an id");
  const runRuleId = idOf("run_rule_id");
  if (runRuleId !== "" && seen.has(runRuleId)) refuse("run_rule_id", "which comes twice");
  seen.add(runRuleId);
  const [projectId, datasetId] = [idOf("session_id"), idOf("dataset_id")];
  // A group without id and count is not known to be without usage.
  const total = group.total_trace_count ?? (runRuleId === "" ? null : 0);
  const days = group.days ?? (total === 0 ? [] : null);
  if (!Array.isArray(days)) refuse("days", "not a list");
  return {
    rule: {
      runRuleId,
      name: fromWireName(textOf("run_rule_name")),
      evaluatorId: idOf("evaluator_id"),
      evaluatorName: fromWireName(textOf("evaluator_name")),
      projectId,
      projectName: fromWireName(textOf("session_name")),
      datasetId,
      datasetName: fromWireName(textOf("dataset_name")),
      weeklyLimit: weeklyLimitOf(group.spend_limit),
    },
    days: fromWireDays(days as unknown[], { group, nth, start }),
  };
}

/** Billionths of a US dollar; null without a weekly limit. */
function weeklyLimitOf(given: unknown): number | null {
  const { limit_usd: limit, window } = fields.safeParse(given).data ?? {};
  return window === "weekly" ? (fromUsd(limit) ?? null) : null;
}

/**
 * A missing value is zero if the group's total agrees: a code evaluator spends nothing. Otherwise it may be unknown, and the day
 * is refused.
 */
function fromWireDays(
  days: readonly unknown[],
  { group, nth, start }: { group: Fields; nth: number; start: number },
): Day[] {
  const seen = new Set<number>();
  const refusals: { [field in "spend_usd" | "trace_count"]?: () => never } = {};
  const found = days.map((given, i) => {
    const day = fields.safeParse(given).data ?? {};
    const refuse = refuserOf(day, `group ${nth}, day ${i}`, `groups.${nth}.days.${i}`);
    const text = typeof day.date === "string" ? day.date : "";
    const at = /^\d{4}-\d{2}-\d{2}(T00:00:00(\.0+)?Z)?$/.test(text)
      ? Date.parse(text.slice(0, 10))
      : Number.NaN;
    if (!(at >= start && at < start + PERIOD))
      refuse("date", "which is no day of the seven that were asked for");
    if (seen.has(at)) refuse("date", "which comes twice");
    seen.add(at);
    for (const field of ["spend_usd", "trace_count"] as const)
      if (day[field] == null)
        refusals[field] ??= () => refuse(field, `and total_${field} does not show that it is 0`);
    const spend = fromUsd(day.spend_usd ?? 0) ?? refuse("spend_usd", "not an amount of dollars from 0 on");
    const traces = day.trace_count ?? 0;
    if (!Number.isSafeInteger(traces) || (traces as number) < 0)
      refuse("trace_count", "not a whole number from 0 on");
    return { day: at, spend, traces: traces as number };
  });
  // Each amount and the total are rounded to the nearest billionth.
  const spend = fromUsd(totalOf(group.total_spend_usd)) ?? Number.NaN;
  if (!(Math.abs(sumOf(found, "spend") - spend) <= found.length)) refusals.spend_usd?.();
  if (sumOf(found, "traces") !== totalOf(group.total_trace_count)) refusals.trace_count?.();
  return found;
}

/** Go omits zeros. Null does not show that a total is zero. */
function totalOf(given: unknown): unknown {
  return given === undefined ? 0 : given;
}

function sumOf(days: readonly Day[], amount: "spend" | "traces"): number {
  return days.reduce((sum, day) => sum + day[amount], 0);
}

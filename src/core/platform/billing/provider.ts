import { z } from "zod";
import type { ProviderReading } from "../../domain/months/provider.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { PlatformHttp, RequestOptions } from "../http/http.ts";
import { readJson, responseError } from "../http/read-body.ts";
import { recordError, refuserOf } from "../parse/response-error.ts";
import { describeValue, fromWireId, fromWireName, fromWireTime, toWireTime } from "../parse/wire-values.ts";

const PATH = "/api/v1/orgs/current/billing/usage";

/** Unread fields may hold anything (rule 14 of docs/rules.md). */
const responseSchema = z.array(z.record(z.string(), z.unknown()));

/**
 * Returns the billing provider's totals of an interval, by metric and workspace. Errors: those of `get`; `response_invalid`,
 * which names the total.
 */
export async function providerUsage(
  http: PlatformHttp,
  { start, end, signal }: Interval & RequestOptions,
): Promise<ProviderReading[]> {
  const query = new URLSearchParams({
    starting_on: toWireTime(start),
    ending_before: toWireTime(end),
    on_current_plan: "true",
  });
  const response = await http.get({ path: PATH, query, signal });
  const wire = await readJson(response, responseSchema);
  try {
    const readings = wire.map(fromWireReading);
    refuseRepeated(readings);
    return readings;
  } catch (error) {
    throw responseError(error, response);
  }
}

function fromWireReading(wire: Readonly<Record<string, unknown>>, nth: number): ProviderReading {
  const refuse = refuserOf(wire, `total ${nth}`, `${nth}`);
  const idOf = (field: string): string => {
    const given = wire[field];
    const id = typeof given === "string" && given !== "" ? fromWireId(given) : undefined;
    return id ?? refuse(field, "not an id");
  };
  const instantOf = (field: string): number => {
    const given = wire[field];
    return (typeof given === "string" ? fromWireTime(given) : undefined) ?? refuse(field, "not a timestamp");
  };
  const name = wire.billable_metric_name ?? null;
  if (name !== null && typeof name !== "string") refuse("billable_metric_name", "not a name");
  const [start, end] = [instantOf("start_timestamp"), instantOf("end_timestamp")];
  if (end <= start) refuse("end_timestamp", "not after start_timestamp");
  // A total may lack its value or workspaces: unknown is not zero.
  const value = wire.value === undefined || wire.value === null ? null : wire.value;
  if (value !== null && !isAmount(value)) refuse("value", "not an amount");
  return {
    customerId: wire.customer_id === undefined || wire.customer_id === null ? null : idOf("customer_id"),
    metricId: idOf("billable_metric_id"),
    metricName: fromWireName(name as string | null),
    start,
    end,
    value: value as number | null,
    workspaces: fromWireGroups(wire.groups, nth),
  };
}

/** Amounts by workspace id in lower case. Null: unknown. */
function fromWireGroups(groups: unknown, nth: number): ReadonlyMap<string, number | null> {
  const found = new Map<string, number | null>();
  if (groups === undefined || groups === null) return found;
  const refuse = (what: string): never => {
    throw recordError(`total ${nth}: groups ${what}`, `${nth}.groups`);
  };
  if (typeof groups !== "object" || Array.isArray(groups)) {
    return refuse(`is ${describeValue(groups)}, not amounts by workspace`);
  }
  for (const [key, amount] of Object.entries(groups)) {
    const id = key === "" ? undefined : fromWireId(key);
    if (id === undefined) return refuse(`has ${describeValue(key)}, which is not an id`);
    if (found.has(id)) return refuse(`has the workspace ${describeValue(id)} twice`);
    if (amount !== null && !isAmount(amount)) {
      return refuse(`has ${describeValue(amount)} for the workspace ${describeValue(id)}, not an amount`);
    }
    found.set(id, amount);
  }
  return found;
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

/** Two totals of one metric over the same time would contradict each other or count twice. */
function refuseRepeated(readings: readonly ProviderReading[]): void {
  const seen = new Map<string, number>();
  readings.forEach(({ customerId, metricId, start, end }, nth) => {
    const key = JSON.stringify([customerId, metricId, start, end]);
    const before = seen.get(key);
    if (before !== undefined) {
      throw recordError(`total ${nth} repeats total ${before}: same customer, metric and time`, `${nth}`);
    }
    seen.set(key, nth);
  });
}

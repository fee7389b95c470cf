import { setFlagsFromString } from "node:v8";
import { z } from "zod";
import { UsageError } from "../../base/errors.ts";
import { DAY_MS, HOUR_MS, STRIDE_MS, STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { GroupBy, UsageRecord } from "../../domain/usage/record.ts";
import type { PlatformHttp, RequestOptions } from "../http/http.ts";
import { responseError } from "../http/read-body.ts";
import { JsonRecordCutter } from "../parse/json-records.ts";
import { PlainRecords } from "../parse/plain-records.ts";
import { foreignError } from "../parse/response-error.ts";
import { eachMeasure, eachOf, wireRecordReader } from "../parse/wire-record.ts";
import { describeValue, GroupingWitness, toWireTime } from "../parse/wire-values.ts";
import { loggedChanges } from "./audit-log.ts";
import type { WorkspaceIo } from "./by-workspace.ts";
import { evaluatorSpend } from "./evaluators.ts";
import { Spool, type SpooledExport, spooledExport } from "./export.ts";
import { organizationKeys, workspaceKeys, workspaceSandboxes } from "./names.ts";
import {
  billingPeriod,
  currentOrganization,
  listWorkspaces,
  organizationLimits,
  serverInfo,
  workspaceLimits,
  workspaceOfStatistics,
  workspaceRejection,
  workspaceTags,
} from "./organization.ts";
import { providerUsage } from "./provider.ts";
import { sandboxUsage } from "./sandboxes.ts";
import { engineLimit, engineUnits, gatewaySpend, members } from "./statement.ts";

export interface UsageQuery {
  /** Epoch ms, half-open: `[start, end)`. */
  readonly start: number;
  readonly end: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  /** At least one; exactly one for a meter that is requested by workspace. */
  readonly workspaceIds: readonly string[];
}

/** `all`: no ids are sent, which not every server allows. */
interface AnyUsageQuery extends Omit<UsageQuery, "workspaceIds"> {
  readonly workspaceIds: readonly string[] | "all";
}

interface UsageResponse {
  /** Undefined if the wire's stride is not one of the five. */
  readonly stride: Stride | undefined;
  readonly records: number;
}

export type BillingClient = ReturnType<typeof createBillingClient>;

const USAGE_PATH = "/api/v1/orgs/current/billing/granular-usage";

const count = z.int().nonnegative().nullish();
const strideSchema = z.object({ days: count, hours: count });

/** Never retries. Throws `PlatformError` or the signal's reason. Closing the client closes `http`. */
export function createBillingClient(http: PlatformHttp) {
  return {
    usage: (query: UsageQuery, io: WorkspaceIo) => usage(http, query, io),
    usageOfAll: (range: Interval & RequestOptions) => usageOfAll(http, range),
    exportCsv: (query: UsageQuery, io: RequestOptions = {}) => exportCsv(http, query, io),
    /** This and the next two return undefined if the server lacks the endpoint (404, 405). */
    workspaces: (io: Parameters<typeof listWorkspaces>[1] = {}) => listWorkspaces(http, io),
    organization: (io: RequestOptions = {}) => currentOrganization(http, io),
    info: (io: RequestOptions = {}) => serverInfo(http, io),
    workspaceOfStatistics: (requested: Parameters<typeof workspaceOfStatistics>[1]) =>
      workspaceOfStatistics(http, requested),
    /** The billing provider's figures. They may need more permission than usage. */
    providerUsage: (requested: Interval & RequestOptions) => providerUsage(http, requested),
    organizationLimits: (io: RequestOptions = {}) => organizationLimits(http, io),
    workspaceLimits: (requested: Parameters<typeof workspaceLimits>[1]) => workspaceLimits(http, requested),
    workspaceRejection: (requested: Parameters<typeof workspaceRejection>[1]) =>
      workspaceRejection(http, requested),
    billingPeriod: (io: RequestOptions = {}) => billingPeriod(http, io),
    workspaceTags: (requested: Parameters<typeof workspaceTags>[1]) => workspaceTags(http, requested),
    organizationKeys: (io: RequestOptions = {}) => organizationKeys(http, io),
    workspaceKeys: (requested: Parameters<typeof workspaceKeys>[1]) => workspaceKeys(http, requested),
    workspaceSandboxes: (requested: Parameters<typeof workspaceSandboxes>[1]) =>
      workspaceSandboxes(http, requested),
    loggedChanges: (requested: Parameters<typeof loggedChanges>[1]) => loggedChanges(http, requested),
    /** Snapshots of what no usage has. */
    members: (requested: Parameters<typeof members>[1]) => members(http, requested),
    gatewaySpend: (io: RequestOptions = {}) => gatewaySpend(http, io),
    engineUnits: (requested: Interval & RequestOptions) => engineUnits(http, requested),
    engineLimit: (io: RequestOptions = {}) => engineLimit(http, io),
    close: () => http.close(),
  };
}

/**
 * Passes records to `onRecords` in batches, in order. Use them only once this resolves, because only then is the response
 * proved whole. An error of `onRecords` ends the request and is thrown unchanged.
 */
async function usage(http: PlatformHttp, query: AnyUsageQuery, io: WorkspaceIo): Promise<UsageResponse> {
  const { signal, onRecords } = io;
  if (METER[query.meter].isByWorkspace) {
    keepRecordsYoung();
    const [workspaceId = ""] = query.workspaceIds;
    const read = query.meter === "sandboxes" ? sandboxUsage : evaluatorSpend;
    return read(http, { ...query, workspaceId }, io);
  }
  const response = await http.get({ path: USAGE_PATH, query: toUsageParameters(query), signal });
  keepRecordsYoung();
  const witness = new GroupingWitness();
  const fromWireRecord = wireRecordReader(query.groupBy, witness);
  const isMeasured = query.meter === "deployments";
  const toRecords = isMeasured ? eachMeasure(fromWireRecord) : eachOf(fromWireRecord);
  const cutter = new JsonRecordCutter(
    (raw, first) => onRecords(toRecords(raw, first)),
    isMeasured ? undefined : new PlainRecords(fromWireRecord, onRecords),
  );
  try {
    for await (const chunk of response.body.chunks()) cutter.push(chunk);
    const { stride: wire, records } = cutter.end();
    const foreign = witness.verdict();
    if (foreign !== undefined) {
      throw foreignError(
        `the response is not grouped by ${query.groupBy}: its records have \`${foreign}\` instead`,
      );
    }
    return { stride: fromWireStride(wire), records };
  } catch (error) {
    throw responseError(error, response);
  }
}

/**
 * Returns traces of all workspaces that the key reads, by workspace id. Servers before 2026-08 require ids and respond with
 * 422.
 */
async function usageOfAll(
  http: PlatformHttp,
  { start, end, signal }: Interval & RequestOptions,
): Promise<Map<string, { name: string | null; traces: number }>> {
  const found = new Map<string, { name: string | null; traces: number }>();
  const onRecords = (records: readonly UsageRecord[]) => {
    for (const { dimensionId, dimensionName: name, traces } of records)
      found.set(dimensionId, { name, traces: (found.get(dimensionId)?.traces ?? 0) + traces });
  };
  await usage(
    http,
    { start, end, meter: "traces", groupBy: "workspace", workspaceIds: "all" },
    { onRecords, signal },
  );
  return found;
}

async function exportCsv(
  http: PlatformHttp,
  query: UsageQuery,
  { signal }: RequestOptions,
): Promise<SpooledExport> {
  const response = await http.get({
    path: `${USAGE_PATH}/export`,
    query: toUsageParameters(query),
    accept: "text/csv, */*;q=0.1",
    signal,
  });
  keepRecordsYoung();
  const spool = new Spool();
  try {
    for await (const chunk of response.body.chunks()) await spool.push(chunk);
  } catch (error) {
    await spool.close();
    throw error;
  }
  return spooledExport(response, { spool, subject: query, signal });
}

/** `workspace_ids` is repeated, never joined with commas (Requests in docs/platform.md). */
function toUsageParameters({ start, end, meter, groupBy, workspaceIds }: AnyUsageQuery): URLSearchParams {
  if (workspaceIds.length === 0) {
    throw new UsageError({
      code: "no_workspaces",
      message: "The request for usage names no workspace, and the platform requires one.",
      next: "Set USAGE_WORKSPACE_IDS, or name a workspace with --workspace.",
    });
  }
  const parameters = new URLSearchParams({
    start_time: toWireTime(start),
    end_time: toWireTime(end),
    group_by: groupBy,
  });
  // Defaults are left out: an older server may refuse unknown parameters.
  const { kind, tier } = METER[meter];
  if (kind !== METER.traces.kind) parameters.set("kind", kind);
  if (tier !== METER.traces.tier) parameters.set("trace_tier", tier);
  if (workspaceIds !== "all") for (const id of workspaceIds) parameters.append("workspace_ids", id);
  return parameters;
}

/** Absent and null `days` and `hours` are 0. Undefined for a length that is no stride. */
function fromWireStride(wire: unknown): Stride | undefined {
  const { data, error } = strideSchema.safeParse(wire);
  if (data !== undefined) {
    const length = (data.days ?? 0) * DAY_MS + (data.hours ?? 0) * HOUR_MS;
    return STRIDES.find((stride) => STRIDE_MS[stride] === length);
  }
  const path = error.issues[0]?.path ?? [];
  const field = path[0] === undefined ? wire : (wire as Record<PropertyKey, unknown>)[path[0]];
  throw foreignError(
    `the response's ${["stride", ...path].join(".")} is ${describeValue(field)}, not a whole number of days and hours`,
  );
}

let isSet = false;

/**
 * Call it before a large response is read. Otherwise V8 keeps records as old objects until a full collection: an
 * export of 5 million rows then takes up to 594 MB. At program start it would void precompiled code and cost 20 % more CPU time.
 */
function keepRecordsYoung(): void {
  if (isSet) return;
  isSet = true;
  setFlagsFromString("--no-allocation-site-pretenuring");
}

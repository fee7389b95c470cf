import { z } from "zod";
import { METER, type Measure } from "../../domain/usage/meter.ts";
import type { GroupBy, UsageRecord } from "../../domain/usage/record.ts";
import { recordError } from "./response-error.ts";
import {
  DIMENSION,
  describeValue,
  fromWireId,
  fromWireTime,
  type GroupingWitness,
  nameOf,
} from "./wire-values.ts";
import "../../base/validation.ts";

const text = z.string().nullish();

interface WireRecord {
  time_bucket?: string | null | undefined;
  traces?: number | undefined;
  dimensions: Record<string, string | null | undefined>;
}

/**
 * Only `dimensions` is required (Records in docs/platform.md); unknown fields are dropped. Keys are named because zod checks
 * named keys in one compiled function.
 */
function wireRecordSchema(groupBy: GroupBy): z.ZodType<WireRecord> {
  const { idKey, nameKey } = DIMENSION[groupBy];
  return z.object({
    time_bucket: text,
    traces: z.int().nonnegative().optional(),
    dimensions: z.object({
      workspace_id: text,
      [idKey]: text,
      ...(nameKey === undefined ? {} : { [nameKey]: text }),
    }),
  });
}

const SCHEMAS: Readonly<Record<GroupBy, z.ZodType<WireRecord>>> = {
  workspace: wireRecordSchema("workspace"),
  project: wireRecordSchema("project"),
  user: wireRecordSchema("user"),
  api_key: wireRecordSchema("api_key"),
};

/** Throws `ResponseError` (`response_invalid`) that names index, JSON path and value. */
export function wireRecordReader(groupBy: GroupBy, witness: GroupingWitness) {
  const { idKey, nameKey } = DIMENSION[groupBy];
  const schema = SCHEMAS[groupBy];
  return function fromWireRecord(raw: unknown, index: number): UsageRecord {
    const checked = schema.safeParse(raw);
    if (!checked.success) throw schemaFault(checked.error, raw, index);
    const { time_bucket: bucket, traces, dimensions } = checked.data;
    const bucketStart = bucket === null || bucket === undefined ? null : fromWireTime(bucket);
    if (bucketStart === undefined) throw valueFault(index, ["time_bucket"], bucket, "is not a timestamp");
    const dimensionId = idOf(dimensions, idKey, index);
    const workspaceId = idKey === "workspace_id" ? dimensionId : idOf(dimensions, "workspace_id", index);
    if (idKey in dimensions) witness.sawOwn();
    else noteForeign(raw, groupBy, witness);
    return {
      bucketStart,
      workspaceId: workspaceId === "" ? null : workspaceId,
      dimensionId,
      dimensionName: nameKey === undefined ? null : nameOf(dimensionId, dimensions[nameKey]),
      // JSON has a negative zero.
      traces: Math.abs(traces ?? 0),
    };
  };
}

function idOf(dimensions: WireRecord["dimensions"], key: string, index: number): string {
  const id = fromWireId(dimensions[key]);
  if (id === undefined)
    throw valueFault(index, ["dimensions", key], dimensions[key], "cannot be kept as an id");
  return id;
}

export type FromWireRecord = ReturnType<typeof wireRecordReader>;
type ToRecords = (raw: readonly unknown[], first: number) => UsageRecord[];

export function eachOf(fromWireRecord: FromWireRecord): ToRecords {
  return (raw, first) => raw.map((one, offset) => fromWireRecord(one, first + offset));
}

const amount = z.int().nonnegative();
const measuresSchema = z.object({ nodes_executed: amount, agent_runs: amount, agent_uptime_seconds: amount });

/**
 * Returns a record for each measure; all are required. A server that does not know deployment usage ignores `kind` and sends no
 * measures. The error's location then ends in `.measures`.
 */
export function eachMeasure(fromWireRecord: FromWireRecord): ToRecords {
  return (raw, first) =>
    raw.flatMap((one, offset) => {
      const record = fromWireRecord(one, first + offset);
      const checked = measuresSchema.safeParse(one);
      if (!checked.success) {
        if (isOfDeployments(one)) throw schemaFault(checked.error, one, first + offset);
        const path = `usage[${first + offset}]`;
        throw recordError(
          `record ${first + offset}: ${path} has none of ${METER.deployments.measures.join(", ")}`,
          `usage.${first + offset}.measures`,
        );
      }
      const amounts = checked.data as Record<Measure, number>;
      return METER.deployments.measures.map((measure) => ({
        ...record,
        measure,
        traces: Math.abs(amounts[measure]),
      }));
    });
}

/** True if the record counts deployments, even if a measure is null. A server that ignores `kind` counts traces instead. */
function isOfDeployments(raw: unknown): boolean {
  const given = raw as Record<string, unknown>;
  return !("traces" in given) || METER.deployments.measures.some((measure) => measure in given);
}

/** `raw` fits its schema, so `dimensions` is an object. The schema does not check the fields that are read here. */
function noteForeign(raw: unknown, groupBy: GroupBy, witness: GroupingWitness): void {
  const { dimensions } = raw as { dimensions: Record<string, unknown> };
  for (const [grouping, { idKey }] of Object.entries(DIMENSION)) {
    const value = dimensions[idKey];
    if (grouping !== groupBy && typeof value === "string" && value !== "") witness.sawForeign(idKey);
  }
}

function schemaFault(error: z.ZodError, raw: unknown, index: number): Error {
  const issue = error.issues[0];
  const path = issue?.path ?? [];
  let value = raw;
  for (const step of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[step];
  return valueFault(index, path, value, `is refused: ${issue?.message ?? "unknown reason"}`);
}

function valueFault(index: number, path: readonly PropertyKey[], value: unknown, why: string): Error {
  const steps = path.map(String);
  const jsonPath = [`usage[${index}]`, ...steps].join(".");
  return recordError(
    `record ${index}: ${jsonPath} = ${describeValue(value)} ${why}`,
    ["usage", index, ...steps].join("."),
  );
}

import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { releaseOf } from "../../../root.ts";
import type { View, ViewColumn } from "../../../store/export/views.ts";
import { openFileTarget, type Target } from "./target.ts";

/** The views that are data sets of FOCUS. */
const FOCUS_VIEWS: Readonly<Record<string, { version: string; dataset: string }>> = {
  focus_1_4_cost_and_usage: { version: "1.4", dataset: "CostAndUsage" },
  focus_1_4_cost_and_usage_by_resource: { version: "1.4", dataset: "CostAndUsage" },
  focus_1_4_billing_period: { version: "1.4", dataset: "BillingPeriod" },
};

/** Columns of JSON objects, which the views show as text. */
const JSON_COLUMNS = [
  ...["AllocatedMethodDetails", "AllocatedTags", "CommitmentProgramEligibilityDetails", "ContractApplied"],
  ...["SkuPriceDetails", "Tags"],
];

const DATA_TYPES: Readonly<Record<string, string>> = {
  "timestamp with time zone": "DATETIME",
  numeric: "DECIMAL",
  date: "DATE",
  boolean: "BOOLEAN",
  integer: "INTEGER",
  bigint: "INTEGER",
};

interface Exported {
  readonly view: View;
  readonly columns: readonly ViewColumn[];
}

/** What FOCUS wants known of a file: who made it and when, in which version, with which columns. Undefined: not of FOCUS. */
function focusMetadata(view: View, columns: readonly ViewColumn[]) {
  const focus = FOCUS_VIEWS[view.name];
  if (focus === undefined) return undefined;
  const DataGeneratorVersion = releaseOf();
  const ColumnDefinition = columns.map(definitionOf);
  const DatasetInstanceId = guidOf(view.name);
  const Schema = {
    // The same for all files with these columns, so that a reader sees when they change.
    SchemaId: guidOf(JSON.stringify([focus, DataGeneratorVersion, ColumnDefinition])),
    DatasetInstanceId,
    FocusDatasetId: focus.dataset,
    FocusVersion: focus.version,
    CreationDate: `${new Date().toISOString().slice(0, 19)}Z`,
    DataGeneratorVersion,
    ColumnDefinition,
  };
  return {
    DataGenerator: { DataGenerator: "usage-etl" },
    DatasetInstance: [{ DatasetInstanceId, DatasetInstanceName: view.name, FocusDatasetId: focus.dataset }],
    Schema: [Schema] as const,
  };
}

function definitionOf({ name, type, precision, scale }: ViewColumn) {
  return {
    ColumnName: name,
    DataType: JSON_COLUMNS.includes(name) ? "JSON" : (DATA_TYPES[type] ?? "STRING"),
    ...(precision === null ? {} : { NumericPrecision: precision, NumberScale: scale }),
    ...(type === "text" ? { StringEncoding: "UTF-8" } : {}),
  };
}

/** A GUID (version 8 of RFC 9562) that is always the same for a text. */
function guidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Of a FOCUS view: the facts that readers of Parquet look for, each under its own key, and all of them as JSON. */
export function keyValuesOf({ view, columns }: Exported): { key: string; value: string }[] {
  const metadata = focusMetadata(view, columns);
  if (metadata === undefined) return [];
  const { DataGenerator, Schema } = metadata;
  const facts = Object.entries({ ...DataGenerator, ...Schema[0] }).map(([key, value]) => {
    return { key, value: typeof value === "string" ? value : JSON.stringify(value) };
  });
  return [...facts, { key: "FocusMetadata", value: JSON.stringify(metadata) }];
}

/**
 * Writes the metadata of a FOCUS view beside its CSV or JSON file, as `FILE.metadata.json`. Both get their names together.
 * Parquet holds its own, and a pipe or device has nothing beside it.
 */
export async function withMetadata(
  target: Target,
  out: string,
  { view, columns, format }: Exported & { readonly format: string },
): Promise<Target> {
  const metadata = focusMetadata(view, columns);
  const found = await stat(out).catch(() => undefined);
  if (metadata === undefined || format === "parquet" || found?.isFile() === false) return target;
  const sidecar = await openFileTarget(`${out}.metadata.json`).catch(async (error) => {
    await target.abandon();
    throw error;
  });
  return {
    write: target.write,
    async commit() {
      await sidecar.write(Buffer.from(`${JSON.stringify(metadata, undefined, 2)}\n`));
      await target.commit();
      await sidecar.commit();
    },
    async abandon() {
      await target.abandon();
      await sidecar.abandon();
    },
  };
}

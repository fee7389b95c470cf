import type { SourceConfig } from "../../config/config.ts";
import { type PlannedScope, planSlices } from "../../domain/planning/plan-slices.ts";
import { type RangeLine, rangeStatus } from "../../domain/planning/range-status.ts";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { ALL_TIME } from "../../domain/time/intervals.ts";
import { STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { capabilitiesOf } from "../../store/catalog/server-capabilities.ts";
import { configuredWorkspaces } from "../../store/catalog/workspaces.ts";
import type { Store } from "../../store/db/database.ts";
import { listSources } from "../../store/report/overview.ts";
import { type KnownSource, statusOfAsked } from "./asked-range.ts";
import { clipToFuture, planSource } from "./plan.ts";

/** What somebody asks for, before it is known what of it is loaded. */
export interface Wish {
  readonly range: Interval;
  readonly stride: Stride;
  readonly groupings: readonly GroupBy[];
  readonly reprocess: "missing" | "all";
}

/** A source with its workspaces, without a request to the platform. */
export interface PreviewedSource {
  readonly slug: string;
  readonly dataStart: number;
  /** Platform ids; empty where the platform lists them and was never asked. */
  readonly workspaceIds: readonly string[];
  /** Undefined before the first contact: nothing is loaded. */
  readonly stored: { readonly store: Store; readonly source: KnownSource } | undefined;
}

export interface Preview {
  /** The part of the range that can have usage; undefined if that is none of it. */
  readonly range: Interval | undefined;
  readonly loaded: readonly RangeLine[];
  readonly slices: readonly UsageRequest[];
}

/** What the tables know of a configured source. Without a database: what is configured. */
export async function previewedSource(
  config: Pick<SourceConfig, "slug" | "dataStart" | "workspaceIds">,
  store: Store | undefined,
): Promise<PreviewedSource> {
  const { slug } = config;
  const found = store && (await listSources(store.db)).find(({ source }) => source === slug);
  if (store === undefined || found === undefined) {
    const { workspaceIds } = config;
    return { slug, dataStart: Date.parse(config.dataStart), workspaceIds, stored: undefined };
  }
  const { sourceId } = found;
  const dataStart = Date.parse(found.dataStart);
  const learned = await capabilitiesOf(store.db, sourceId);
  const source = { sourceId, dataStart, capabilities: new Set(learned.map(({ capability }) => capability)) };
  const workspaces = await configuredWorkspaces(store.db, sourceId);
  const workspaceIds = workspaces.map((one) => one.workspaceId);
  return { slug, dataStart, workspaceIds, stored: { store, source } };
}

/** What is loaded of a range, and what `backfill` would ask for now, which takes the same plan. Nothing is asked. */
export async function previewOf(
  { dataStart, stored, workspaceIds }: PreviewedSource,
  { range: asked, stride, groupings, reprocess }: Wish,
  now: number,
): Promise<Preview> {
  const range = clipToFuture(stored?.source ?? { capabilities: new Set<never>() }, asked, stride, now);
  if (range === undefined) return { range, loaded: [], slices: [] };
  const wanted = [{ stride, range }];
  if (stored !== undefined) {
    const { store, source } = stored;
    const workspaces = workspaceIds.map((workspaceId) => ({ workspaceId }));
    const request = { wanted, groupings, workspaceIds, reprocess, retry: "all" } as const;
    return {
      range,
      loaded: await statusOfAsked(store.db, source, { wanted, groupings, workspaceIds }),
      slices: await planSource({ ...source, store, workspaces }, request),
    };
  }
  const scopes = emptyScopes(stride, groupings, workspaceIds);
  return {
    range,
    loaded: rangeStatus({ wanted, dataStart, known: scopes, unavailable: new Set() }),
    slices: planSlices({ scopes, wanted, dataStart }),
  };
}

/** Scopes of which nothing is loaded. One workspace stands for those that are not known yet. */
function emptyScopes(stride: Stride, groupings: readonly GroupBy[], workspaceIds: readonly string[]) {
  const ids = workspaceIds.length === 0 ? ["each workspace"] : workspaceIds;
  const strides = STRIDES.slice(0, STRIDES.indexOf(stride) + 1);
  return ids.flatMap((workspaceId) =>
    groupings.flatMap((groupBy) =>
      strides.map((one) => {
        const scope: PlannedScope = { scopeId: 0, workspaceId, groupBy, stride: one, missing: [ALL_TIME] };
        return { ...scope, coverage: [], failures: [] };
      }),
    ),
  );
}

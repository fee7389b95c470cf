import type { EmailPolicy, SourceConfig } from "../../base/config.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import type { BillingClient } from "../../platform/billing/billing.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import type { Store } from "../../store/db/database.ts";
import { settleAfterOf } from "../../store/proof/lateness.ts";
import type { LearnedServer, ServerFacts } from "./learned-server.ts";
import type { RetryDeps } from "./retries.ts";

export interface SourceDeps extends RetryDeps {
  readonly store: Store;
  readonly billing: BillingClient;
  readonly config: SourceConfig;
  readonly settings: {
    readonly settleAfterMs: number;
    readonly hourlyForMs: number;
    readonly syncEveryMs: number;
    /** Maximum age of a provisional figure that still matches the workspace's count. */
    readonly refreshAfterMs: number;
    readonly userEmail: EmailPolicy;
    readonly meters: readonly Meter[];
  };
  readonly admit: () => Promise<void>;
  /** Resolves when a further page may be requested of a response that the queue admitted. Default: `admit`. */
  readonly admitMore?: () => Promise<void>;
  /** Whether contact leaves out configured workspaces that the platform does not show. Default: it refuses the source. */
  readonly leavesOutUnshown?: boolean;
  /** Default: requests and writes are always allowed. */
  readonly gate?: {
    check(): void;
    /** Runs a write as soon as the store takes writes. */
    onceWritable(write: () => Promise<void>): Promise<void>;
  };
}

export interface CreatedSource {
  readonly store: Store;
  readonly sourceId: number;
}

export interface OpenSource extends SourceDeps, CreatedSource, ServerFacts {
  readonly dataStart: number;
  readonly workspaceIds: readonly string[];
  readonly server: LearnedServer;
  readonly access: AccessProof;
  readonly splitLimit: SplitLimit;
  readonly runId?: number | undefined;
}

/** The start of a meter, epoch ms. For a meter that the server does not count: the start of traces. */
export function startOf(
  { meters, dataStart }: Pick<ServerFacts, "meters"> & { readonly dataStart: number },
  meter: Meter,
): number {
  return meters.get(meter) ?? dataStart;
}

/**
 * How old a provisional figure by project, user or key may get before a sync requests it again. Undefined: every sync
 * requests it.
 */
export function keptForMs({ settings }: Pick<SourceDeps, "settings">): number | undefined {
  const keptFor = settings.refreshAfterMs - settings.syncEveryMs;
  return keptFor > 0 ? keptFor : undefined;
}

/** Proof that workspaces can be read. An empty response means zero only while the proof is fresh (docs/rules.md, rule 4). */
export interface AccessProof {
  fresh(): Promise<void>;
  renew(): Promise<void>;
  /** Requests new proof at the end of work. The response may invalidate zeros that rest on the earlier proof. */
  confirm(): Promise<void>;
}

/** Stops splitting if a server refuses everything, or each bucket would be requested. */
interface SplitLimit {
  allows(): boolean;
  refused(): void;
  usable(): void;
}

export function createSplitLimit(): SplitLimit {
  let [refusals, responses] = [0, 0];
  return {
    allows: () => refusals < 40 + 10 * responses,
    refused: () => void refusals++,
    usable: () => void responses++,
  };
}

export async function statesOf(
  { sourceId, store, workspaceIds }: OpenSource,
  stride: Stride,
  groupings: readonly GroupBy[] = GROUPINGS,
  meter: Meter = "traces",
): Promise<ScopeState[]> {
  await ensureScopes(store.db, { sourceId, meter, groupings, strides: [stride] });
  const all = await scopeStates(store.db, { sourceId, meter, groupings, strides: [stride] });
  const ids = new Set(workspaceIds);
  return all.filter((state) => ids.has(state.workspaceId));
}

export function settleAfterIn(
  { sourceId, store, settings }: Pick<OpenSource, "sourceId" | "store" | "settings">,
  meter: Meter,
): Promise<number> {
  return settleAfterOf(store.db, { sourceId, meter, settleAfterMs: settings.settleAfterMs });
}

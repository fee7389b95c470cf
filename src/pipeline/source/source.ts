import type { EmailPolicy, SourceConfig } from "../../config/config.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import type { BillingClient } from "../../platform/billing/billing.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";
import type { StoredWorkspace } from "../../store/catalog/workspaces.ts";
import type { Store } from "../../store/db/database.ts";
import { settleAfterOf } from "../../store/proof/lateness.ts";
import type { RetryDeps } from "./retries.ts";

/** What a use case needs from outside, for one source. */
export interface SourceDeps extends RetryDeps {
  readonly store: Store;
  readonly billing: BillingClient;
  readonly config: SourceConfig;
  readonly settings: {
    readonly settleAfterMs: number;
    readonly hourlyForMs: number;
    readonly syncEveryMs: number;
    /** How old a provisional figure may be that still adds up to the count by workspace. */
    readonly refreshAfterMs: number;
    readonly userEmail: EmailPolicy;
    /** What a sync loads, as far as the server counts it. */
    readonly meters: readonly Meter[];
  };
  /** Resolves when the source's rate limit has room for one more request. */
  readonly admit: () => Promise<void>;
  /** The same for each further request of one answer, where the queue has made room for the first. Default: `admit`. */
  readonly admitMore?: () => Promise<void>;
  /** Whether contact leaves out configured workspaces that the platform does not show. Default: it refuses the source. */
  readonly leavesOutUnshown?: boolean;
  /** Default: requests are sent and writes are made whatever happens. */
  readonly gate?: {
    /** Throws while the store could not keep an answer. */
    check(): void;
    /** Runs a write now or, while the store takes none, when it does again. */
    onceWritable(write: () => Promise<void>): Promise<void>;
  };
}

/** A source as Postgres knows it. */
export interface EnteredSource {
  readonly store: Store;
  readonly sourceId: number;
}

/** A source after its first contact in this process. */
export interface OpenSource extends SourceDeps, EnteredSource {
  /** UTC day, epoch milliseconds. */
  readonly dataStart: number;
  readonly workspaces: readonly StoredWorkspace[];
  /** What the server counts, and from when on, epoch milliseconds. Its answers teach it, so it changes. */
  readonly meters: Map<Meter, number>;
  /** What the server was learned not to do. The set changes as its answers teach. */
  readonly capabilities: Set<ServerCapability>;
  /** Strides that the server does not answer in, and whose daily retry is due. */
  readonly strideRetries: Set<ServerCapability>;
  readonly access: AccessProof;
  readonly splitLimit: SplitLimit;
  /** The run that requests are counted for; none outside of one. */
  readonly runId?: number | undefined;
}

/** Where a meter begins, epoch milliseconds; one that the server does not count: where traces do. */
export function startOf(
  { meters, dataStart }: { readonly meters: ReadonlyMap<Meter, number>; readonly dataStart: number },
  meter: Meter,
): number {
  return meters.get(meter) ?? dataStart;
}

/** As old a provisional figure by project, user or key may be, so that it is not too old before the next sync. Undefined: each sync asks for all. */
export function keptForMs({ settings }: Pick<SourceDeps, "settings">): number | undefined {
  const keptFor = settings.refreshAfterMs - settings.syncEveryMs;
  return keptFor > 0 ? keptFor : undefined;
}

/** Proof that workspaces can be read. An empty answer means zero only while it is fresh (docs/rules.md, rule 4). */
export interface AccessProof {
  /** Makes sure that the proof has used up at most half of its time. */
  fresh(): Promise<void>;
  /** Asks the platform now, whatever is known. */
  renew(): Promise<void>;
  /** Asks again at the end of work, since its zeros rest on an earlier proof. The answer may withdraw them. */
  confirm(): Promise<void>;
}

/** Keeps a server that refuses everything from being asked for every single bucket. */
interface SplitLimit {
  allows(): boolean;
  refused(): void;
  usable(): void;
}

/** Splitting is allowed until refusals outnumber 40 plus ten for each usable answer. */
export function createSplitLimit(): SplitLimit {
  let [refusals, answers] = [0, 0];
  return {
    allows: () => refusals < 40 + 10 * answers,
    refused: () => void refusals++,
    usable: () => void answers++,
  };
}

/** The scopes of a stride and meter that this source reads, with what is known of their time. */
export async function statesOf(
  { sourceId, store, workspaces }: OpenSource,
  stride: Stride,
  groupings: readonly GroupBy[] = GROUPINGS,
  meter: Meter = "traces",
): Promise<ScopeState[]> {
  await ensureScopes(store.db, { sourceId, meter, groupings, strides: [stride] });
  const all = await scopeStates(store.db, { sourceId, meter, groupings, strides: [stride] });
  const ids = new Set(workspaces.map((one) => one.workspaceId));
  return all.filter((state) => ids.has(state.workspaceId));
}

/** How long after its end a day of the meter is final, in milliseconds. */
export function settleAfterIn(
  { sourceId, store, settings }: Pick<OpenSource, "sourceId" | "store" | "settings">,
  meter: Meter,
): Promise<number> {
  return settleAfterOf(store.db, { sourceId, meter, settleAfterMs: settings.settleAfterMs });
}

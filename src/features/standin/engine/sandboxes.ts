import { type Changed, hourOf, type LedgerOptions, type LedgerRange } from "./ledger.ts";
import { named, type Sandbox } from "./organisation.ts";
import { unit } from "./random.ts";
import { HOUR } from "./trend.ts";

export const SANDBOX_COSTS = "/api/v2/sandboxes/usage/costs";

type SandboxMeasure = "lcu" | "lsu";
const STANDARD = ["compute_standard_units", "storage_standard_units"] as const;
type StandardMeasure = (typeof STANDARD)[number];

/** Millionths of a unit, so that sums are exact. Six decimals are documented. Null: not available (documented). */
type Units = Record<SandboxMeasure, number> & Record<StandardMeasure, number | null>;

export interface SandboxSum extends Units {
  readonly resourceId: string;
  readonly resourceType: Sandbox["type"];
  readonly workspaceId: string;
}

export interface SandboxHour extends SandboxSum {
  /** Epoch ms. */
  readonly hour: number;
}

interface SandboxChange {
  readonly resourceId: string;
  readonly at: number;
  readonly measure: SandboxMeasure | StandardMeasure;
  /** Millionths of a unit. */
  readonly delta: number;
}

/** An hour that has begun shows its whole amount (our guess). A deleted workspace has usage until its deletion. */
export class SandboxLedger {
  /** Added to the sum of a range with the instant `at`, but to no hour. */
  readonly contradictions: SandboxChange[] = [];
  readonly #changed = new Map<string, Units>();
  readonly #options: LedgerOptions;

  constructor(options: LedgerOptions) {
    this.#options = { ...options, seed: options.seed + 32_452_843 };
  }

  hours({ workspaceId, start, end }: LedgerRange): SandboxHour[] {
    const requested = this.#requested(workspaceId);
    const now = this.#options.now();
    const rows: SandboxHour[] = [];
    const first = Math.ceil(Math.max(start, this.#options.start) / HOUR) * HOUR;
    for (let hour = first; hour < Math.min(end, now); hour += HOUR) {
      for (const sandbox of requested) {
        const units = this.#shown(sandbox, hour, now);
        if (units.lcu > 0 || units.lsu > 0) rows.push({ ...about(sandbox), hour, ...units });
      }
    }
    return rows;
  }

  sums(range: LedgerRange): SandboxSum[] {
    const { workspaceId, start, end } = range;
    const sums = new Map<string, SandboxSum>();
    for (const one of this.#requested(workspaceId)) sums.set(one.id, { ...about(one), ...NONE });
    for (const row of this.hours(range)) {
      const sum = sums.get(row.resourceId);
      if (sum === undefined) continue;
      sum.lcu += row.lcu;
      sum.lsu += row.lsu;
      // Null if any hour is (our guess): only complete usage is available (documented).
      for (const one of STANDARD) sum[one] = added(sum[one], row[one]);
    }
    for (const { resourceId, at, measure, delta } of this.contradictions) {
      const sum = sums.get(resourceId);
      if (sum !== undefined && at >= start && at < end)
        sum[measure] = Math.max(0, (sum[measure] ?? 0) + delta);
    }
    return [...sums.values()].filter(({ lcu, lsu }) => lcu > 0 || lsu > 0);
  }

  /**
   * Changes one row, never below 0. A future row shows at its hour. Compute units of a snapshot stay 0. Throws for a row before
   * the start and for an unknown resource.
   */
  change({ resourceId, at, measure, delta }: SandboxChange): Changed {
    const hour = hourOf(this.#options.start, at, delta);
    const sandbox = named("sandbox", resourceId, this.#options.organisation.sandboxes);
    const before = this.#shown(sandbox, hour)[measure] ?? 0;
    const units = { ...this.#of(sandbox, hour) };
    const isAlwaysZero = measure === "lcu" && sandbox.type === "SNAPSHOT";
    units[measure] = isAlwaysZero ? 0 : Math.max(0, (units[measure] ?? 0) + delta);
    this.#changed.set(rowId(sandbox, hour), units);
    return { before, after: this.#shown(sandbox, hour)[measure] ?? 0 };
  }

  /** The hour has no number of this measure any more. */
  hide({ resourceId, at, measure }: Omit<SandboxChange, "delta"> & { measure: StandardMeasure }): void {
    const sandbox = named("sandbox", resourceId, this.#options.organisation.sandboxes);
    const hour = hourOf(this.#options.start, at, 0);
    this.#changed.set(rowId(sandbox, hour), { ...this.#of(sandbox, hour), [measure]: null });
  }

  #requested(workspaceId: string | undefined): Sandbox[] {
    return this.#options.organisation.sandboxes.filter(
      ({ workspace }) => workspaceId === undefined || workspace.id === workspaceId,
    );
  }

  #shown(sandbox: Sandbox, hour: number, now = this.#options.now()): Readonly<Units> {
    const until = Math.min(now, sandbox.workspace.deletedAt ?? now);
    return hour >= until ? NONE : this.#of(sandbox, hour);
  }

  #of(sandbox: Sandbox, hour: number): Readonly<Units> {
    return this.#changed.get(rowId(sandbox, hour)) ?? seeded(this.#options.seed, sandbox, hour);
  }
}

const NONE: Readonly<Units> = { lcu: 0, lsu: 0, compute_standard_units: 0, storage_standard_units: 0 };

function added(sum: number | null, part: number | null): number | null {
  return sum === null || part === null ? null : sum + part;
}

/**
 * The amounts depend only on seed, resource and hour (our own). Sandboxes compute in some hours. Some sandboxes and all
 * snapshots use storage. Standard units are not available in some days of a resource.
 */
function seeded(seed: number, { id, type, begins, ends }: Sandbox, hour: number): Readonly<Units> {
  if (hour < begins || hour >= ends) return NONE;
  const own = Number.parseInt(id.slice(0, 8), 16);
  const nth = hour / HOUR;
  const isRunning = type === "SANDBOX" && unit(seed, own, nth) < 0.1 + 0.6 * unit(seed, own, 0);
  const isKept = type === "SNAPSHOT" || unit(seed + 1, own, 0) < 0.7;
  const standard = (is: boolean, n: number) =>
    unit(seed + n, own, Math.floor(nth / 24)) < 0.06
      ? null
      : is
        ? 1 + 2 * Math.floor(400_000 * unit(seed + n + 1, own, nth))
        : 0;
  return {
    compute_standard_units: standard(isRunning, 5),
    storage_standard_units: standard(isKept, 7),
    // 0.010001 to 1.999997 and odd in the sixth decimal, so rounding gives a wrong sum.
    lcu: isRunning ? 10_001 + 2 * Math.floor(994_999 * unit(seed + 2, own, nth)) : 0,
    lsu: isKept ? 200 + Math.floor(5000 * unit(seed + 3, own, 0) + 5 * unit(seed + 4, own, nth)) : 0,
  };
}

function about({ id, type, workspace }: Sandbox): Omit<SandboxSum, keyof Units> {
  return { resourceId: id, resourceType: type, workspaceId: workspace.id };
}

function rowId({ id }: Sandbox, hour: number): string {
  return `${id} ${hour}`;
}

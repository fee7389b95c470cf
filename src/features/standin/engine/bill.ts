import type { DeploymentLedger, Ledger } from "./ledger.ts";
import type { Organisation, Workspace } from "./organisation.ts";

/** These metrics and the grouping by workspace are documented, among others. */
export const METRICS = {
  traces: {
    id: "5b1f7a4e-0a52-4c0e-9a7b-1f6f0d3c2a01",
    name: "LangSmith Traces (Base Charge)",
  },
  longlived: {
    id: "5b1f7a4e-0a52-4c0e-9a7b-1f6f0d3c2a02",
    name: "LangSmith Traces (Extended Data Retention Upgrades)",
  },
  // Two names that the documentation has had.
  runs: { id: "5b1f7a4e-0a52-4c0e-9a7b-1f6f0d3c2a04", name: "LangSmith Deployment Runs" },
  nodes: { id: "5b1f7a4e-0a52-4c0e-9a7b-1f6f0d3c2a05", name: "LangSmith Deployment Nodes Executed" },
  /** A metric without granular usage. */
  fleet: { id: "5b1f7a4e-0a52-4c0e-9a7b-1f6f0d3c2a03", name: "LangSmith Fleet Runs" },
} as const;
export type Metric = keyof typeof METRICS;

export interface Drift {
  readonly metric: Metric;
  readonly workspaceId: string;
  readonly at: number;
  /** Null: unknown count. */
  readonly delta: number | null;
}

export interface Limit {
  /** Null: the organization. */
  readonly workspaceId: string | null;
  /** `monthly_traces` and `monthly_longlived_traces` (seen in client code). */
  readonly limitType: string;
  /** Null: no limit. */
  readonly value: number | null;
  /** The limit is for each of these, such as each `project`. Undefined: for the workspace. */
  readonly scope?: string | undefined;
}

interface SettingChange {
  readonly at: number;
  readonly operation: string;
  /** Null: of the whole organization. */
  readonly workspaceId: string | null;
  readonly userId: string | null;
  readonly succeeded: boolean;
}

interface BillOptions {
  readonly organisation: Organisation;
  readonly ledger: Ledger;
  readonly deploymentLedger: DeploymentLedger;
  readonly now: () => number;
}

interface MetricTotal {
  readonly metric: Metric;
  readonly start: number;
  readonly end: number;
  readonly value: number | null;
  readonly groups: ReadonlyMap<string, number | null>;
}

/** The provider counts the same traces separately, so an error on one side shows as a difference. */
export class Bill {
  readonly drifts: Drift[] = [];
  readonly limits: Limit[] = [];
  readonly changes: SettingChange[] = [];
  readonly rejecting = new Map<string, string>();
  /** Day of the month on which a billing period begins, 1 to 28. */
  periodDay = 1;
  readonly #options: BillOptions;

  constructor(options: BillOptions) {
    this.#options = options;
  }

  totals({ start, end }: { start: number; end: number }): MetricTotal[] {
    return (Object.keys(METRICS) as Metric[]).map((metric) => {
      const groups = new Map<string, number | null>();
      for (const workspace of this.#options.organisation.workspaces) {
        const count = this.#count(metric, workspace, { start, end });
        if (count > 0) groups.set(workspace.id, count);
      }
      for (const one of this.drifts) {
        if (one.metric !== metric || one.at < start || one.at >= end) continue;
        const before = groups.get(one.workspaceId) ?? 0;
        groups.set(one.workspaceId, one.delta === null ? null : Math.max(0, before + one.delta));
      }
      const values = [...groups.values()];
      const value = values.reduce<number | null>(
        (sum, one) => (sum === null || one === null ? null : sum + one),
        0,
      );
      return { metric, start, end, value, groups };
    });
  }

  /** Unreadable workspaces are included (our guess). */
  #count(metric: Metric, workspace: Workspace, { start, end }: { start: number; end: number }): number {
    if (metric === "fleet") return 0;
    const { organisation, ledger, deploymentLedger } = this.#options;
    if (metric === "runs" || metric === "nodes") {
      const measure = metric === "runs" ? "agent_runs" : "nodes_executed";
      return organisation.deploymentStreams
        .filter(({ project }) => project.workspace === workspace)
        .reduce((sum, stream) => sum + (deploymentLedger.counts(stream, [start, end], measure)[0] ?? 0), 0);
    }
    const tier = metric === "longlived" ? "longlived" : null;
    return organisation.streams
      .filter(({ project }) => project.workspace === workspace)
      .reduce((sum, stream) => sum + (ledger.counts(stream, [start, end], tier)[0] ?? 0), 0);
  }

  /** Begins at midnight UTC of `periodDay` (our guess). */
  period(): { start: number; end: number } {
    const now = new Date(this.#options.now());
    const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
    const begins = now.getUTCDate() >= this.periodDay ? month : month - 1;
    return { start: Date.UTC(year, begins, this.periodDay), end: Date.UTC(year, begins + 1, this.periodDay) };
  }
}

import type { Organisation } from "./organisation.ts";

export interface Policy {
  readonly id: string;
  readonly matchers: readonly { readonly key: string; readonly value: string }[];
  readonly windows: readonly ("hourly" | "daily" | "weekly" | "monthly")[];
  /** US dollars in the window under way. Null: the platform could not look it up (documented). */
  spendUsd: number | null;
}

export interface EngineRow {
  readonly workspaceId: string;
  readonly projectId: string;
  /** Decimal as text (documented). */
  lcu: string;
  unpricedRows: number;
}

/** Numbers that only snapshots have (docs/platform.md, Statement). All amounts are our own. */
export class Statement {
  readonly policies: Policy[];
  readonly engine: EngineRow[];
  /** Null: no limit. */
  engineLimit: string | null = "500.5";
  engineEnforcedLimit: string | null = "250.25";
  /** Null or negative: no limit (documented). */
  fleetLimit: number | null = 25;

  constructor({ workspaces, users, projects }: Organisation) {
    const [workspace, user] = [workspaces[0]?.id ?? "", users[0]?.id ?? ""];
    this.policies = [
      {
        id: "7a5d2c1e-0000-4000-8000-000000000001",
        matchers: [{ key: "workspace_id", value: workspace }],
        windows: ["monthly"],
        spendUsd: 12.345678901,
      },
      {
        id: "7a5d2c1e-0000-4000-8000-000000000002",
        matchers: [
          { key: "workspace_id", value: workspace },
          { key: "user_id", value: user },
        ],
        windows: ["hourly", "daily"],
        spendUsd: 0,
      },
    ];
    this.engine = projects.slice(0, 2).map(({ id, workspace: of }, nth) => ({
      workspaceId: of.id,
      projectId: id,
      lcu: `${3 + nth}.000000000000000001`,
      unpricedRows: nth,
    }));
  }
}

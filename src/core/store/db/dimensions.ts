import type { Dimension } from "../../domain/usage/record.ts";

interface DimensionColumns {
  readonly id: string;
  /** Column of the current name. Sandboxes and users have no such column; addresses of users are in `dim_user` alone. */
  readonly name?: string;
  readonly title: string;
}

export const DIMENSIONS: Readonly<Record<Dimension, DimensionColumns>> = {
  workspace: { id: "workspace_id", name: "workspace_name", title: "workspace" },
  project: { id: "project_id", name: "project_name", title: "project" },
  user: { id: "user_id", title: "user" },
  api_key: { id: "api_key_short_key", name: "api_key_name", title: "API key" },
  deployment: { id: "deployment_id", name: "deployment_name", title: "deployment" },
  sandbox: { id: "sandbox_id", title: "sandbox" },
  run_rule: { id: "run_rule_id", name: "run_rule_name", title: "run rule" },
};

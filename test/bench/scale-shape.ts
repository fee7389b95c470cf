import { workspaceId } from "./shapes.ts";

/** The customer of `npm run bench:scale`. */
export interface Customer {
  readonly workspaces: number;
  /** Of all workspaces together. */
  readonly users: number;
  readonly days: number;
  /** How long the platform takes for an answer. */
  readonly latencyMs: number;
}

/** Ids in an answer by each dimension, for one workspace. A user works on one day of five, in two hours of it. */
export function idsOf({ users, workspaces }: Customer) {
  return { workspace: 1, project: 5, user: Math.ceil(users / workspaces), api_key: 3 } as const;
}

export function workspaceIds({ workspaces }: Customer): string[] {
  return Array.from({ length: workspaces }, (_, i) => workspaceId(i));
}

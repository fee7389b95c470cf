import type { Route } from "./alert-route.ts";

export const OWNED_DIMENSIONS = ["project", "user", "api_key", "deployment", "sandbox"] as const;
export type OwnedDimension = (typeof OWNED_DIMENSIONS)[number];

export const DIVIDING_DIMENSIONS = ["project", "user", "api_key"] as const;
/**
 * The dimension whose ids divide a workspace's traces. Only one can: the platform does not report which user was in which
 * project.
 */
export type DividingDimension = (typeof DIVIDING_DIMENSIONS)[number];

export interface OwnerShare {
  /** Null: the owner is the value of the rule's tag. */
  readonly owner: string | null;
  readonly costCenter: string | null;
  /** Ten-thousandths. The shares of a rule add up to 10,000. */
  readonly share: number;
}

export const WHOLE_SHARE = 10_000;

/** The first rule of the file that matches an id on a day applies. */
export interface OwnerRule {
  readonly line: number;
  readonly source: string | null;
  readonly workspace: string | null;
  readonly of: { readonly dimension: OwnedDimension; readonly id: string } | null;
  /** The name on the day. `*` matches any text. */
  readonly name: string | null;
  /** A null value matches every value of the key. */
  readonly tag: { readonly key: string; readonly value: string | null } | null;
  /** UTC days, end exclusive. Null: no bound. */
  readonly from: string | null;
  readonly to: string | null;
  readonly shares: readonly OwnerShare[];
}

export const BUDGET_PERIODS = ["month", "billing_period"] as const;
type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

export interface Budget {
  readonly line: number;
  /** Null: every source. A budget by billing period has one source. */
  readonly source: string | null;
  readonly per: BudgetPeriod;
  readonly of: { readonly kind: "owner" | "workspace" | "project"; readonly id: string } | null;
  /** ISO 4217 code. Null: the budget is in traces. */
  readonly currency: string | null;
  readonly amount: string;
  /** Percentages of the amount at which a warning is sent, ascending. */
  readonly warnAt: readonly number[];
}

export interface OwnerFile {
  readonly content: string;
  readonly divideBy: DividingDimension;
  readonly rules: readonly OwnerRule[];
  readonly budgets: readonly Budget[];
  readonly routes: readonly Route[];
}

export const UNALLOCATED = "(unallocated)";
export const NO_COST_CENTER = "(none)";

export interface Tag {
  readonly key: string;
  readonly value: string;
}

/** Suggests a rule that gives a part to a team, by its first tag if there is one: then similar parts match too. */
export function ruleFor(part: {
  readonly workspaceId: string;
  readonly dimension: OwnedDimension | null;
  /** Spelled as in the views: they show an id `(none)` as `\(none)`. */
  readonly id: string;
  readonly tags: readonly Tag[];
}): string {
  const { workspaceId, dimension, id, tags } = part;
  const [tag] = tags;
  if (tag !== undefined) return `{ tag: { ${quoted(tag.key)}: ${quoted(tag.value)} }, owner: TEAM }`;
  if (dimension === null) return `{ workspace: ${quoted(workspaceId)}, owner: TEAM }`;
  // Users and keys may be in several workspaces.
  const within = dimension === "user" || dimension === "api_key" ? `workspace: ${quoted(workspaceId)}, ` : "";
  return `{ ${within}${dimension}: ${quoted(id.replace(/^\\(?=\\*\(none\)$)/, ""))}, owner: TEAM }`;
}

function quoted(text: string): string {
  return /^[\w-]+$/.test(text) ? text : JSON.stringify(text);
}

import type { Route } from "./alert-route.ts";

/** What can have an owner by its id. Of the first three one divides traces. */
export const OWNED_DIMENSIONS = ["project", "user", "api_key", "deployment", "sandbox"] as const;
export type OwnedDimension = (typeof OWNED_DIMENSIONS)[number];

export const DIVIDING_DIMENSIONS = ["project", "user", "api_key"] as const;
/** The dimension whose ids divide the traces of a workspace: the platform does not tell which user was in which project. */
export type DividingDimension = (typeof DIVIDING_DIMENSIONS)[number];

/** A share of what a rule matches. */
export interface OwnerShare {
  /** Null: the value of the rule's tag. */
  readonly owner: string | null;
  readonly costCenter: string | null;
  /** In ten-thousandths; those of a rule add up to 10,000. */
  readonly share: number;
}

export const WHOLE_SHARE = 10_000;

/** Of the rules that match a day of an id, the first in the file decides. */
export interface OwnerRule {
  /** Where it stands in the file, from 1 on. */
  readonly line: number;
  /** Null: of every source, of every workspace (the platform's id). */
  readonly source: string | null;
  readonly workspace: string | null;
  /** One id of a dimension, by the platform's id. */
  readonly of: { readonly dimension: OwnedDimension; readonly id: string } | null;
  /** A name as it was on the day; `*` stands for any text. */
  readonly name: string | null;
  /** Null as a value: every value of the key. */
  readonly tag: { readonly key: string; readonly value: string | null } | null;
  /** UTC days; null: no bound. The end is not included. */
  readonly from: string | null;
  readonly to: string | null;
  readonly shares: readonly OwnerShare[];
}

export const BUDGET_PERIODS = ["month", "billing_period"] as const;
type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

/** What somebody may use in a calendar month, or in a billing period of a source. */
export interface Budget {
  readonly line: number;
  /** Null: of every source; a billing period is that of one. */
  readonly source: string | null;
  readonly per: BudgetPeriod;
  /** Null: of everything. */
  readonly of: { readonly kind: "owner" | "workspace" | "project"; readonly id: string } | null;
  /** ISO 4217; null: traces. */
  readonly currency: string | null;
  /** A plain decimal. */
  readonly amount: string;
  /** Per cents of the amount at which it is warned of, ascending. */
  readonly warnAt: readonly number[];
}

/** A checked owner file. */
export interface OwnerFile {
  readonly content: string;
  readonly divideBy: DividingDimension;
  readonly rules: readonly OwnerRule[];
  readonly budgets: readonly Budget[];
  readonly routes: readonly Route[];
}

/** What nobody owns, in views and on pages. */
export const UNALLOCATED = "(unallocated)";
/** An owner without a cost centre, in the same places. */
export const NO_COST_CENTER = "(none)";

export interface Tag {
  readonly key: string;
  readonly value: string;
}

/** A line of an owner file that gives something to a team, by its first tag where it has one: it settles others like it too. */
export function ruleFor(part: {
  readonly workspaceId: string;
  readonly dimension: OwnedDimension | null;
  /** As views show it: an id of this spelling is `\(none)`. */
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

/** As YAML takes it for one text. */
function quoted(text: string): string {
  return /^[\w-]+$/.test(text) ? text : JSON.stringify(text);
}

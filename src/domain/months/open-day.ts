import type { Meter } from "../usage/meter.ts";
import type { GroupBy } from "../usage/record.ts";

/** Why a day of a meter, dimension and workspace keeps its month open: the first that applies. */
export const OPEN_REASONS = [
  "not_available",
  "missing",
  "failed",
  "unverified",
  "provisional",
  "open",
  "not_reconciled",
  "platform_disagrees",
  "total_differs",
  "tiers_differ",
  "provider_differs",
] as const;
export type OpenReason = (typeof OPEN_REASONS)[number];

/** No request repairs these. The month is closed anyway if the user accepts them. */
export const DISAGREEMENTS: readonly OpenReason[] = [
  "platform_disagrees",
  "total_differs",
  "tiers_differ",
  "provider_differs",
];

/** Whether a sync asks for a workspace: the listing may lack it, or the configuration not name it any more. */
export type WorkspaceAccess = "read" | "unlisted" | "not_configured";

export interface OpenDay {
  /** UTC midnight, epoch milliseconds. */
  readonly day: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  /** The platform's id. */
  readonly workspaceId: string;
  readonly access: WorkspaceAccess;
  readonly reason: OpenReason;
}

/** In words. */
export const OPEN_WORDS: Readonly<Record<OpenReason, string>> = {
  not_available: "not available",
  missing: "not loaded",
  failed: "failed",
  unverified: "workspace access is not proven",
  provisional: "provisional",
  open: "differs from the export",
  not_reconciled: "not reconciled with the export",
  platform_disagrees: "platform's JSON and export differ",
  total_differs: "platform's totals differ",
  tiers_differ: "retention tiers do not add up",
  provider_differs: "billing provider's total differs",
};

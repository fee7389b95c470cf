import { createHash } from "node:crypto";
import type { Period } from "../../core/domain/months/month.ts";
import type { Database } from "../../core/store/db/database.ts";
import type { RequiredWorkspace } from "./open-days.store.ts";
import { type Kept, totalsToClose } from "./totals-to-close.store.ts";

interface Workspaces {
  readonly required: readonly RequiredWorkspace[];
  readonly without: readonly string[];
  readonly withoutCosts?: boolean;
}

/**
 * SHA-256 of a close: its workspaces and those left out, totals, costs, and each difference on which the platform contradicts
 * itself.
 */
export function digestOfClose(close: Workspaces & { readonly kept: Kept }): string {
  const { required, without, withoutCosts = false } = close;
  const { totals, costs, findings } = close.kept;
  const about = {
    workspaces: required.map(({ entityId }) => entityId).sort((a, b) => a - b),
    without: [...without].sort(),
    costs: withoutCosts ? [] : costs.map(({ currency, cost }) => [currency, cost]),
    totals,
    findings,
  };
  return createHash("sha256").update(JSON.stringify(about)).digest("hex");
}

export async function digestToClose(
  db: Database,
  close: Workspaces & { readonly sourceId: number; readonly period: Period },
): Promise<string> {
  const { sourceId, period, required } = close;
  const workspaces = required.map(({ entityId }) => entityId);
  return digestOfClose({ ...close, kept: await totalsToClose(db, { sourceId, period, workspaces }) });
}

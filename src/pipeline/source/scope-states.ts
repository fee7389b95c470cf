import type { Stride } from "../../domain/time/stride.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import type { OpenSource } from "./source.ts";

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

import type { Reach } from "../../domain/planning/control.ts";
import { type BillPart, billPartsOf } from "../../store/catalog/bill-parts.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import type { OpenSource } from "../source/source.ts";
import { checkProvider, type ProviderResult } from "./check-provider.ts";

export interface ReadBill {
  /** Undefined: refused lately, and not asked again yet. */
  readonly provider: ProviderResult | undefined;
}

/**
 * Reads the organisation's bill: compares its totals with months of stored traces. `isPatient`: what the server refused is left
 * alone for a day.
 */
export async function readBill(
  source: OpenSource,
  { reach, isPatient }: { reach: Reach; isPatient: boolean },
  onProgress?: OnProgress,
): Promise<ReadBill> {
  const learned = await billPartsOf(source.store.db, source.sourceId);
  const isDue = (part: BillPart) => !isPatient || learned.find((one) => one.part === part)?.isDue !== false;
  const provider = isDue("provider_totals") ? await checkProvider(source, reach, onProgress) : undefined;
  return { provider };
}

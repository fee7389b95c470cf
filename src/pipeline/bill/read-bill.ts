import type { Reach } from "../../domain/planning/control.ts";
import { PlatformError } from "../../errors.ts";
import { type BillPart, billPartsOf } from "../../store/bill/bill-parts.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import type { OpenSource } from "../source/source.ts";
import { checkProvider, type ProviderResult } from "./check-provider.ts";
import { type ReadPart, readBillingPeriod, readUsageLimits } from "./read-terms.ts";

interface FailedPart {
  readonly part: BillPart;
  readonly code: string;
  readonly message: string;
}

/** Undefined: refused lately and not asked for again yet, or failed. */
export interface ReadBill {
  readonly provider: ProviderResult | undefined;
  readonly limits: ReadPart | undefined;
  readonly period: ReadPart | undefined;
  readonly failed: readonly FailedPart[];
}

/**
 * Reads the organization's bill: compares its totals with months of stored traces, and keeps usage limits and the billing period.
 * Each part stands for itself. `isPatient`: what the server refused is left alone for a day.
 */
export async function readBill(
  source: OpenSource,
  { reach, isPatient }: { reach: Reach; isPatient: boolean },
  onProgress?: OnProgress,
): Promise<ReadBill> {
  const learned = await billPartsOf(source.store.db, source.sourceId);
  const failed: FailedPart[] = [];
  const read = async <T>(part: BillPart, work: () => Promise<T>): Promise<T | undefined> => {
    if (isPatient && learned.find((one) => one.part === part)?.isDue === false) return undefined;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      const { code, message } = error;
      failed.push({ part, code, message });
      return undefined;
    }
  };
  return {
    period: await read("billing_period", () => readBillingPeriod(source)),
    limits: await read("usage_limits", () => readUsageLimits(source)),
    provider: await read("provider_totals", () => checkProvider(source, reach, onProgress)),
    failed,
  };
}

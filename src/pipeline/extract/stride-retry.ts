import type { UsageRequest } from "../../domain/planning/request.ts";
import type { OpenSource } from "../source/source.ts";

/**
 * Whether a task is dropped since the server does not answer in its stride. Once a day one task is let through: it
 * uses up the stride's retry.
 */
export function isStrideRefused(
  { capabilities, strideRetries }: Pick<OpenSource, "capabilities" | "strideRetries">,
  { window }: Pick<UsageRequest, "window">,
): boolean {
  const capability = `no_${window.stride}` as const;
  const isRetry = strideRetries.delete(capability);
  return capabilities.has(capability) && !isRetry;
}

import type { SourceConfig } from "../base/config.ts";
import { type BillingClient, createBillingClient } from "./billing/billing.ts";
import { PlatformHttp, type PlatformHttpOptions } from "./http/http.ts";

/** The caller closes it. */
export function billingClientOf(
  { baseUrl, apiKey, organizationId, answerLimit }: SourceConfig,
  options: Pick<PlatformHttpOptions, "onAnswer"> = {},
): BillingClient {
  return createBillingClient(
    new PlatformHttp({
      baseUrl,
      ...options,
      apiKey,
      answerLimit: answerLimit && answerLimit * 1_048_576,
      organizationId,
    }),
  );
}

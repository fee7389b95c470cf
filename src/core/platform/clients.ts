import type { SourceConfig } from "../base/config.ts";
import { type BillingClient, createBillingClient } from "./billing/billing.ts";
import { PlatformHttp, type PlatformHttpOptions } from "./http/http.ts";

/** The caller must close the client. */
export function billingClientOf(
  { baseUrl, apiKey, organizationId, responseLimit }: SourceConfig,
  options: Pick<PlatformHttpOptions, "onResponse"> = {},
): BillingClient {
  return createBillingClient(
    new PlatformHttp({
      baseUrl,
      ...options,
      apiKey,
      responseLimit: responseLimit && responseLimit * 1_048_576,
      organizationId,
    }),
  );
}

import type { SourceConfig } from "../config.ts";
import { type BillingClient, createBillingClient } from "./billing.ts";
import { createPlatformHttp } from "./http.ts";

/** The billing client of a configured source; whoever asks for it closes it. */
export function billingClientOf({ baseUrl, apiKey, organizationId }: SourceConfig): BillingClient {
  return createBillingClient(
    createPlatformHttp({
      baseUrl,
      apiKey: apiKey.reveal(),
      ...(organizationId === undefined ? {} : { organizationId }),
    }),
  );
}

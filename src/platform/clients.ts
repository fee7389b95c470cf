import type { PlatformAccess, SourceConfig } from "../config/config.ts";
import { UsageError } from "../errors.ts";
import { createA2aClient } from "./agents/a2a.ts";
import { type ControlPlaneClient, createControlPlaneClient } from "./agents/control-plane.ts";
import { createThreadsClient } from "./agents/threads.ts";
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

/** Errors: `control_plane_missing`, `key_missing`. */
export function controlPlaneClientOf(access: PlatformAccess): ControlPlaneClient {
  const { controlPlaneUrl, workspaceId, bearerToken } = access;
  return createControlPlaneClient(
    httpOf(access, controlPlaneUrl, { ...CONTROL_PLANE, workspaceId, bearerToken }),
  );
}

export type DeploymentClients = ReturnType<typeof deploymentClientsOf>;

/** The clients share connections. Errors: `deployment_missing`, `key_missing`. */
export function deploymentClientsOf(access: PlatformAccess) {
  const http = httpOf(access, access.deploymentUrl, DEPLOYMENT);
  return { threads: createThreadsClient(http), a2a: createA2aClient(http), close: () => http.close() };
}

interface Host extends Pick<PlatformHttpOptions, "workspaceId" | "bearerToken"> {
  readonly variable: string;
  /** Error code if the setting is missing. */
  readonly code: string;
  readonly next: string;
}

const CONTROL_PLANE = {
  variable: "USAGE_CONTROL_PLANE_URL",
  code: "control_plane_missing",
  next: "Set it to the control plane's host, such as https://api.host.langchain.com, without /v2.",
};
const DEPLOYMENT = {
  variable: "USAGE_DEPLOYMENT_URL",
  code: "deployment_missing",
  next: "Set it to the address that the platform shows on the deployment's page.",
};

function httpOf(
  { apiKey, organizationId }: PlatformAccess,
  baseUrl: string | undefined,
  { variable, code, next, ...more }: Host,
): PlatformHttp {
  if (baseUrl === undefined) throw new UsageError({ code, message: `${variable} is not set.`, next });
  if (apiKey === undefined) {
    throw new UsageError({
      code: "key_missing",
      message: "USAGE_API_KEY is not set.",
      next: "Set it (or USAGE_API_KEY_FILE) to an API key of the platform.",
    });
  }
  return new PlatformHttp({ ...more, baseUrl, variable, apiKey, organizationId });
}

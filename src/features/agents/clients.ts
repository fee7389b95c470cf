import type { PlatformAccess } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { PlatformHttp, type PlatformHttpOptions } from "../../core/platform/http/http.ts";
import { createA2aClient } from "./a2a.ts";
import { type ControlPlaneClient, createControlPlaneClient } from "./control-plane.ts";
import { createThreadsClient } from "./threads.ts";

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
  readonly code: string;
  readonly next: string;
}

const CONTROL_PLANE = {
  variable: "USAGE_CONTROL_PLANE_URL",
  code: "control_plane_missing",
  next: "Set USAGE_CONTROL_PLANE_URL to the control plane's host, such as https://api.host.langchain.com, without /v2.",
};
const DEPLOYMENT = {
  variable: "USAGE_DEPLOYMENT_URL",
  code: "deployment_missing",
  next: "Set USAGE_DEPLOYMENT_URL to the address that the platform shows on the deployment's page.",
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
      next: "Set USAGE_API_KEY or USAGE_API_KEY_FILE to an API key of the platform.",
    });
  }
  return new PlatformHttp({ ...more, baseUrl, variable, apiKey, organizationId });
}

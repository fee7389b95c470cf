import { onTestFinished } from "vitest";
import type { PlatformAccess } from "../../../../src/config/config.ts";
import { Secret } from "../../../../src/config/secret.ts";
import { PlatformError } from "../../../../src/errors.ts";
import { type StandinOptions, startStandin } from "../../../../src/local/standin/server.ts";
import { controlPlaneClientOf, deploymentClientsOf } from "../../../../src/platform/clients.ts";
import { PlatformHttp } from "../../../../src/platform/http/http.ts";
import { framed, KEY, rejection } from "../http/raw-server.ts";

/** The clients of control plane, threads and A2A, on the stand-in and on servers that answer wrongly. */

export async function setup(
  options: StandinOptions = {},
  more: Pick<PlatformAccess, "workspaceId" | "bearerToken"> = {},
) {
  const standin = await startStandin(options);
  const { url } = standin;
  const access = {
    apiKey: new Secret(standin.apiKey),
    organizationId: undefined,
    controlPlaneUrl: url,
    deploymentUrl: url,
    ...more,
  };
  const plane = controlPlaneClientOf(access);
  const deployment = deploymentClientsOf(access);
  onTestFinished(async () => {
    await plane.close();
    await deployment.close();
    await standin.close();
  });
  return { standin, plane, ...deployment, access };
}

export function deploymentOf(deploymentUrl: string) {
  const clients = deploymentClientsOf({
    apiKey: new Secret(KEY),
    organizationId: undefined,
    controlPlaneUrl: undefined,
    deploymentUrl,
  });
  onTestFinished(() => clients.close());
  return clients;
}

export function httpOf(baseUrl: string, variable = "USAGE_DEPLOYMENT_URL") {
  const http = new PlatformHttp({ baseUrl, apiKey: KEY, variable });
  onTestFinished(() => http.close());
  return http;
}

export async function refused(asked: Promise<unknown>) {
  const error = await rejection(asked);
  if (!(error instanceof PlatformError)) throw error;
  return error;
}

export const answered = (body: string) => ({ bytes: framed(body, "length"), closing: "keep" as const });

/** A clock that passes as it is waited on. */
export function handClock() {
  let now = 0;
  return {
    now: () => now,
    wait: async (ms: number, signal?: AbortSignal) => {
      signal?.throwIfAborted();
      now += ms;
    },
  };
}

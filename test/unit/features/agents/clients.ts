import { onTestFinished } from "vitest";
import { PlatformError } from "../../../../src/core/base/errors.ts";
import { Secret } from "../../../../src/core/base/secret.ts";
import { PlatformHttp } from "../../../../src/core/platform/http/http.ts";
import { deploymentClientsOf } from "../../../../src/features/agents/clients.ts";
import { type StandinOptions, startStandin } from "../../../../src/features/standin/server.ts";
import { framed, KEY, rejection } from "../../core/platform/http/raw-server.ts";

export async function setup(options: StandinOptions = {}) {
  const standin = await startStandin(options);
  onTestFinished(() => standin.close());
  return { standin, ...deploymentOf(standin.url, standin.apiKey) };
}

export function deploymentOf(deploymentUrl: string, apiKey = KEY) {
  const clients = deploymentClientsOf({
    apiKey: new Secret(apiKey),
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

export async function refused(requested: Promise<unknown>) {
  const error = await rejection(requested);
  if (!(error instanceof PlatformError)) throw error;
  return error;
}

export const responded = (body: string) => ({ bytes: framed(body, "length"), closing: "keep" as const });

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

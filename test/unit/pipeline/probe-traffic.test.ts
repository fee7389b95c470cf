import { expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/config/secret.ts";
import { startStandin } from "../../../src/local/standin/server.ts";
import { PROBE_TRACES, sendTraffic } from "../../../src/pipeline/proof/probe.ts";
import { deploymentClientsOf } from "../../../src/platform/clients.ts";

/** The probe sends the same traffic to a server of the specification and to a newer one. */

test.each(["specified", "live"] as const)("six traces are sent and billed, A2A %s", async (a2a) => {
  const at = Date.parse("2026-09-16T13:25:00Z");
  const standin = await startStandin({ a2a, now: () => at });
  const deployment = deploymentClientsOf({
    apiKey: new Secret(standin.apiKey),
    organizationId: undefined,
    controlPlaneUrl: undefined,
    deploymentUrl: standin.url,
  });
  onTestFinished(async () => {
    await deployment.close();
    await standin.close();
  });
  expect(await sendTraffic({ deployment, assistant: "agent" }, { mark: "probe" })).toBe(PROBE_TRACES);
  const project = standin.organisation.projects.find(({ name }) => name === "agent-server");
  const key = standin.organisation.keys.at(-1) ?? null;
  if (project === undefined) throw new Error("nothing was traced");
  expect(standin.ledger.read({ project, user: null, key, at })).toBe(PROBE_TRACES);
  const { recent } = standin.requests;
  const paths = recent.map(({ method, url }) => `${method} ${url.split("?")[0]}`);
  // The card is read once, by who asks whether there is one.
  expect(paths.filter((one) => /\/a2a\/|card/.test(one))).toEqual([
    "GET /.well-known/agent-card.json",
    "POST /a2a/agent",
    "POST /a2a/agent",
  ]);
});

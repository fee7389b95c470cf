import { onTestFinished } from "vitest";
import type { Standin } from "../../src/local/standin/server.ts";
import { type ProbeProgress, type ProbeRequest, probeMeter } from "../../src/pipeline/proof/probe.ts";
import type { OpenSource } from "../../src/pipeline/source/source.ts";
import { type DeploymentClients, deploymentClientsOf } from "../../src/platform/clients.ts";
import { type Bench, setup } from "./source.ts";

/** A source with a deployment whose traffic is billed, and the meter probe of it. */
export interface ProbeBench extends Bench {
  readonly source: OpenSource;
  readonly deployment: DeploymentClients;
  /** What a probe is asked for here. */
  readonly request: ProbeRequest;
  probe(
    more?: Partial<ProbeRequest>,
    onProgress?: (progress: ProbeProgress) => void,
  ): ReturnType<typeof probeMeter>;
  /** Changes what is billed to the probe's project in this hour. */
  rebill(traces: number): void;
}

/** Waits take no time. The stand-in's clock stands still, or (`timePasses`) goes on by them. */
export async function setupProbe({ timePasses = false } = {}): Promise<ProbeBench> {
  const bench = await setup();
  const { standin } = bench;
  const opened = await bench.open({ config: { deploymentUrl: standin.url } });
  const source: OpenSource = {
    ...opened,
    clock: {
      ...opened.clock,
      wait: async (ms, signal) => {
        await opened.clock.wait(ms, signal);
        if (timePasses) standin.setClock({ advance: ms });
      },
    },
  };
  const deployment = deploymentClientsOf(source.config);
  onTestFinished(() => deployment.close());
  const request = {
    deployment,
    project: "agent-server",
    assistantId: "agent",
    withinMs: 60_000,
    settleForMs: 60_000,
  };
  return {
    ...bench,
    source,
    deployment,
    request,
    probe: (more, onProgress) => probeMeter(source, { ...request, ...more }, onProgress),
    rebill: (traces) => {
      const project = ownProject(standin);
      const key = standin.organisation.keys.at(-1) ?? null;
      standin.ledger.change({ project, user: null, key, at: bench.now }, traces);
    },
  };
}

export function ownProject({ organisation }: Standin) {
  const project = organisation.projects.find((one) => one.name === "agent-server");
  if (project === undefined) throw new Error("nothing was traced");
  return project;
}

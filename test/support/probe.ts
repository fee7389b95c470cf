import { onTestFinished } from "vitest";
import type { OpenSource } from "../../src/core/pipeline/source/source.ts";
import { type DeploymentClients, deploymentClientsOf } from "../../src/features/agents/clients.ts";
import { type ProbeRequest, probeMeter } from "../../src/features/probe/probe-meter.ts";
import type { Standin } from "../../src/features/standin/server.ts";
import { type Bench, setup } from "./source.ts";

export interface ProbeBench extends Bench {
  readonly source: OpenSource;
  readonly deployment: DeploymentClients;
  probe(more?: Partial<ProbeRequest>): ReturnType<typeof probeMeter>;
  rebill(traces: number): void;
}

export async function setupProbe({ timePasses = false } = {}): Promise<ProbeBench> {
  const bench = await setup();
  const { standin } = bench;
  const opened = await bench.open({ config: { deploymentUrl: standin.url } });
  let now = bench.now;
  const source: OpenSource = {
    ...opened,
    clock: {
      now: () => now,
      wait: async (ms, signal) => {
        await opened.clock.wait(ms, signal);
        now += ms;
        if (timePasses) standin.setClock({ advance: ms });
      },
    },
  };
  const deployment = deploymentClientsOf(source.config);
  onTestFinished(() => deployment.close());
  const request: ProbeRequest = {
    deployment,
    project: "agent-server",
    assistant: "agent",
    user: "(none)",
    key: `...${standin.apiKey.slice(-4)}`,
    within: 60_000,
    settleFor: 60_000,
  };
  return {
    ...bench,
    source,
    deployment,
    probe: (more) => probeMeter(source, { ...request, ...more }),
    rebill: (traces) => {
      const project = ownProject(standin);
      const key = standin.organisation.keys.at(-1) ?? null;
      standin.ledger.change({ project, user: null, key, at: bench.now }, traces);
    },
  };
}

function ownProject({ organisation }: Standin) {
  const project = organisation.projects.find((one) => one.name === "agent-server");
  if (project === undefined) throw new Error("nothing was traced");
  return project;
}

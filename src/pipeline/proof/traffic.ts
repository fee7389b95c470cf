import { EtlError, PlatformError } from "../../errors.ts";
import type { DeploymentClients } from "../../platform/clients.ts";

interface Traffic {
  readonly deployment: Pick<DeploymentClients, "threads" | "a2a">;
  readonly assistantId: string;
  /** Stands in every text that is sent. */
  readonly mark: string;
  /** Called before each trace is made. */
  readonly expect: (traces: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

const PLAIN_RUNS = 2;
/** Makes the stand-in's assistant take long, so that the run is under way when it is rolled back. Other assistants ignore it. */
const SLOW = "delay=60000";
/** How long one run may take. */
const RUN_WITHIN_MS = 120_000;

/** The most traces a probe sends: plain runs, two of a rollback, two of A2A. */
export const PROBE_TRACES = PLAIN_RUNS + 2 + 2;

/**
 * Sends the probe's traffic one by one: plain runs, a run that is rolled back once it has begun, the run that rolls it
 * back, and, where the deployment has A2A, one message sent and one streamed. Nothing is sent twice.
 */
export async function sendProbeTraffic(traffic: Traffic): Promise<void> {
  const { deployment, assistantId, mark, expect, signal } = traffic;
  const { threads, a2a } = deployment;
  const start = async (threadId: string, text: string, strategy?: "rollback") => {
    await expect(1);
    return threads.createRun({ threadId, assistantId, text: `${mark}: ${text}`, strategy }, { signal });
  };
  const within = { withinMs: RUN_WITHIN_MS, signal };
  // Only a run that has begun is a trace that must be billed, and nobody knows that of one that was deleted.
  const refuseDeleted = ({ status, runId }: { status: string; runId: string }) => {
    if (status !== "rolled_back") return;
    throw new EtlError({
      code: "probe_run_deleted",
      message: `Run ${runId} of the probe was deleted by somebody else.`,
      next: "Give the probe a deployment that nobody else calls, and run it again.",
    });
  };
  for (let i = 1; i <= PLAIN_RUNS; i++) {
    const { threadId } = await threads.createThread({ signal });
    refuseDeleted(await threads.join(await start(threadId, `plain run ${i}`), within));
  }
  const { threadId } = await threads.createThread({ signal });
  refuseDeleted(await threads.waitForStart(await start(threadId, `to be rolled back ${SLOW}`), within));
  refuseDeleted(await threads.join(await start(threadId, "rolls back", "rollback"), within));

  if (!(await speaksA2a(deployment, assistantId, signal))) return;
  await expect(1);
  await a2a.send({ assistantId, text: `${mark}: sent` }, within);
  await expect(1);
  for await (const event of a2a.stream({ assistantId, text: `${mark}: streamed` }, within)) {
    if (event.final) return;
  }
}

/** `http.disable_a2a` removes the card together with the endpoint. Asking for a card costs nothing. */
async function speaksA2a(
  { a2a }: Traffic["deployment"],
  assistantId: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    await a2a.card(assistantId, { signal });
    return true;
  } catch (error) {
    if (error instanceof PlatformError && error.status === 404) return false;
    throw error;
  }
}

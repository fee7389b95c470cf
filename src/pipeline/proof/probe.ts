import type { SourceConfig } from "../../config/config.ts";
import type { ProbeSender } from "../../domain/proof/probe.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import { EtlError, PlatformError, UsageError } from "../../errors.ts";
import type { DeploymentClients } from "../../platform/clients.ts";
import { deadlineSignal } from "../../platform/http/poll.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  enterProbe,
  expectTraces,
  keepBaseline,
  type OpenProbe,
  openProbeOf,
  startWaiting,
} from "../../store/proof/probes.ts";
import type { OpenSource } from "../source/source.ts";
import { conclude, type ProbeResult } from "./probe-verdict.ts";
import { type ProbeProgress, readForProbe, theProject, waitUntilBilled } from "./probe-wait.ts";

export type { ProbeProgress, ProbeResult };

export interface ProbeRequest {
  readonly deployment: Pick<DeploymentClients, "threads" | "a2a">;
  /** Name or id of the project that the deployment traces into, and nobody else. */
  readonly project: string;
  readonly assistantId: string;
  readonly withinMs: number;
  /** All figures must stay for so long. */
  readonly settleForMs: number;
  /** Billing that takes longer is late; undefined: there is no limit. */
  readonly lateAfterMs?: number | undefined;
}

/** Sending takes a minute, and is given up after this. */
const SEND_WITHIN_MS = 600_000;
/** A probe still `sending` after this was left behind by a process that died. */
const SENDING_FOR_MS = 2 * SEND_WITHIN_MS;
/** The platform answers in days for 31 days at most (docs/platform.md, Contracts). */
const TAKEN_UP_FOR_MS = 29 * DAY_MS;

/**
 * Sends a small known amount of traffic, waits until it is billed, and compares what was billed with what was sent. Takes
 * over a probe whose traffic another process sent. `inconclusive` says why no verdict is sure.
 *
 * Throws `UsageError` before anything is sent (`probe_under_way`, `probe_project_ambiguous`). While it waits it throws a
 * refused key or the signal's reason; the next call then takes the probe over.
 */
export async function probeMeter(
  source: OpenSource,
  request: ProbeRequest,
  onProgress: (progress: ProbeProgress) => void = () => {},
): Promise<ProbeResult> {
  const left = await takeUp(source);
  if (left !== undefined) return waitUntilBilled(source, left, { resumed: true, onProgress });
  const probeId = await enterProbe(source.store.db, {
    sourceId: source.sourceId,
    project: request.project,
    sender: senderOf(source.config),
  });
  if (probeId === undefined) throw underWay();
  const failure = await send(source, request, probeId);
  const probe = await requireOwn(source, probeId);
  if (failure === undefined) return waitUntilBilled(source, probe, { resumed: false, onProgress });
  const { error } = failure;
  // Nobody knows whether the last trace was made, so there is nothing to compare.
  const said =
    error instanceof EtlError
      ? error
      : new EtlError({ code: "probe_failed", message: String(error), next: "" });
  const result = await giveUp(source, probe, said);
  if (error instanceof UsageError) throw error;
  return { ...result, resumed: false, cause: error };
}

/**
 * Whom a deployment's traces are billed to. Unless it is configured: nobody, and the key that the deployment is called
 * with, of which the platform shows the end.
 */
function senderOf({ probeUser, probeShortKey, apiKey }: SourceConfig): ProbeSender {
  return { user: probeUser ?? "(none)", key: probeShortKey ?? `...${apiKey.reveal().slice(-4)}` };
}

/** Reads the usage before, then sends. Returns an error, which then ends the probe. */
async function send(
  source: OpenSource,
  { deployment, project, assistantId, withinMs, settleForMs, lateAfterMs }: ProbeRequest,
  probeId: number,
): Promise<{ readonly error: unknown } | undefined> {
  const { db } = source.store;
  try {
    const { periodStart: start } = await requireOwn(source, probeId);
    const workspaceIds = source.workspaces.map((w) => w.workspaceId);
    const before = await readForProbe(source, { start, workspaceIds, project });
    const projectId = theProject(project, before.found);
    await keepBaseline(db, { probeId, baseline: before.readings, projectId });
    await sendProbeTraffic({
      deployment,
      assistantId,
      mark: `metering probe ${probeId}`,
      expect: (traces) => expectTraces(db, { probeId, traces }),
      signal: deadlineSignal("The end of the probe's traffic", {
        withinMs: SEND_WITHIN_MS,
        signal: source.signal,
        next: () => "Some of it was sent. Run the probe again once the deployment answers.",
      }),
    });
    await startWaiting(db, { probeId, withinMs, settleForMs, lateAfterMs });
    return undefined;
  } catch (error) {
    return { error };
  }
}

/** Ends an open probe without a verdict: the platform it was sent to is gone. */
export async function abandonProbe(source: OpenSource): Promise<void> {
  const open = await openProbeOf(source.store.db, source.sourceId);
  if (open === undefined) return;
  const message = "The probe was given up: the platform that received its traffic is gone.";
  await giveUp(source, open, { code: "probe_interrupted", message });
}

/** Ends a probe of which nothing can be compared. */
function giveUp(source: OpenSource, probe: OpenProbe, { code, message }: { code: string; message: string }) {
  return conclude(source, probe, { state: "inconclusive", figures: [], code, message });
}

/** The probe that waits to be billed, if there is one. Ends one that a dead process left while it sent. */
async function takeUp(source: OpenSource): Promise<OpenProbe | undefined> {
  const open = await openProbeOf(source.store.db, source.sourceId);
  if (open === undefined) return undefined;
  const age = (await storeNow(source.store.db)) - open.startedAt;
  if (open.state === "waiting" && age < TAKEN_UP_FOR_MS) return open;
  if (open.state === "sending" && age < SENDING_FOR_MS) throw underWay();
  const message =
    open.state === "sending"
      ? "The process ended while it sent the traffic. How much of it arrived is not known."
      : "No process waited for its traffic to be billed, and the platform no longer answers its days as days.";
  await giveUp(source, open, { code: "probe_interrupted", message });
  return undefined;
}

/** The probe that this process entered. Another process may have ended it as left behind and entered its own. */
async function requireOwn(source: OpenSource, probeId: number): Promise<OpenProbe> {
  const open = await openProbeOf(source.store.db, source.sourceId);
  if (open?.probeId !== probeId) throw underWay();
  return open;
}

function underWay(): UsageError {
  return new UsageError({
    code: "probe_under_way",
    message: "Another process is sending a probe's traffic for this source.",
    next: "Wait for it. The view reporting_detail.metering_probe shows its verdict.",
  });
}

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

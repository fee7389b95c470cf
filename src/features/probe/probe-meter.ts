import { EtlError, PlatformError, UsageError } from "../../core/base/errors.ts";
import { batchesOf } from "../../core/domain/planning/request.ts";
import { ceilToGrid, DAY_MS, floorToGrid, strideOfRange } from "../../core/domain/time/stride.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";
import { addUpUsable } from "../../core/pipeline/source/fetch-usage.ts";
import { sendRequest } from "../../core/pipeline/source/send-request.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { RpcError } from "../agents/a2a-calls.ts";
import type { DeploymentClients } from "../agents/clients.ts";
import { deadlineSignal } from "../agents/poll.ts";
import {
  compareProbe,
  type ProbeComparison,
  type ProbeFigure,
  type ProbeReadings,
  type Rise,
  type WorkspaceReading,
} from "./probe.ts";

export interface ProbeRequest {
  readonly deployment: Pick<DeploymentClients, "threads" | "a2a">;
  readonly project: string;
  readonly assistant: string;
  readonly user: string;
  readonly key: string;
  readonly within: number;
  /** How long all figures must stay right, in ms. */
  readonly settleFor: number;
  readonly onTrace?: (sent: number) => void;
  /** Called if the deployment refuses A2A: before the first trace, unless it has a card. */
  readonly onNoA2a?: (reason: string) => void;
  /** Called after each reading; `next` is the pause until the next one, in ms. */
  readonly onReading?: (billed: number, expected: number, next: number) => void;
}

export interface ProbeResult extends Omit<ProbeComparison, "progress"> {
  readonly state: "matched" | "differs" | "inconclusive";
  readonly code?: string;
  readonly message?: string;
  readonly expected: number;
  /** Time from the last trace sent to the response with all traces, in ms. Null: no response had all. */
  readonly delayMs: number | null;
}

type Verdict = Pick<ProbeResult, "state" | "code" | "message">;

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
/**
 * A trace may be billed twice, the second time as late as the first. So the figures must stay for as long as billing took, up
 * to this.
 */
const LONGEST_HOLD_MS = 300_000;
const WORK_MS = 900_000;

/**
 * Sends a few traces, waits until they are billed, and compares the rise of usage with their number. Nothing is stored: a probe
 * that throws has no verdict, and its traces stay billed. Throws the errors of the deployment's clients and of `readUsage`
 * (unreachable only after the deadline), and `DeadlineError`.
 */
export async function probeMeter(source: OpenSource, request: ProbeRequest): Promise<ProbeResult> {
  const { clock } = source;
  const { within, settleFor } = request;
  const limit = deadlineSignal("The verdict of the probe", {
    withinMs: within + Math.max(settleFor, LONGEST_HOLD_MS) + WORK_MS,
    signal: source.signal,
    next: () => "The traces that were sent are billed. Run the probe again.",
  });
  const startedAt = await storeNow(source.store.db);
  const from = { start: floorToGrid(startedAt, DAY_MS), project: request.project };
  const limited = { ...source, signal: limit };
  const before = await readUsage(limited, from);
  const mark = `metering probe ${new Date(startedAt).toISOString()}`;
  const expected = await sendTraffic(request, { mark, signal: limit });
  const sentAt = clock.now();
  const deadline = sentAt + within;
  let billedAt: number | undefined;
  let isHeld = false;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const after = await readUsage(limited, { ...from, before }).catch((error: unknown) => {
      const isAway = error instanceof PlatformError && error.retryable;
      if (!isAway || clock.now() >= deadline) throw error;
    });
    if (after === undefined) {
      await clock.wait(pause, limit);
      continue;
    }
    const now = clock.now();
    const comparison = compareProbe({
      ...request,
      before: before.readings,
      after: after.readings,
      home: after.home ?? before.home,
      projectId: before.projectId ?? after.projectId,
      expected,
    });
    const { progress, figures, others } = comparison;
    // If a figure fell again, the traces were not billed. The delay ends with the first reading after which all stayed.
    billedAt = progress === "lacking" ? undefined : (billedAt ?? now);
    if (progress === "billed" ? isHeld : now >= deadline) {
      const delayMs = billedAt === undefined ? null : billedAt - sentAt;
      return { ...verdictOf(comparison), expected, delayMs, figures, others };
    }
    isHeld = progress === "billed";
    const hold = Math.max(settleFor, Math.min(LONGEST_HOLD_MS, (billedAt ?? now) - sentAt));
    const next = isHeld ? hold : Math.min(pause, deadline - now);
    const billed = figures.find(({ groupBy }) => groupBy === "project")?.billed ?? 0;
    request.onReading?.(billed, expected, next);
    await clock.wait(next, limit);
  }
}

function verdictOf({ figures, others }: ProbeComparison): Verdict {
  const wrong = figures.filter(({ difference }) => difference !== 0);
  if (wrong.length > 0) {
    const differences = wrong.map(({ groupBy, billed, difference, expectedId, rises }) => {
      const many = difference > 0 ? "many" : `few${expectedId === null ? "" : ` for ${expectedId}`}`;
      const rose = rises.length === 0 ? "" : ` (rose: ${describeRises(rises)})`;
      return `${groupBy}: ${billed} billed, ${Math.abs(difference)} too ${many}${rose}`;
    });
    return { state: "differs", code: "probe_differs", message: `${differences.join("; ")}${hintOf(wrong)}` };
  }
  if (others.added + others.removed === 0) return { state: "matched" };
  // Other traffic in the workspace looks like the probe's, so only the rise of the probe's project is decided.
  const message =
    `The project rose by what was sent, but other projects of the workspace rose by ${others.added} and fell by ` +
    `${others.removed} traces meanwhile. Not decided: to which user and API key the probe's traces were billed, and ` +
    "whether some were billed again to another project. Give the deployment a workspace of its own";
  return { state: "inconclusive", code: "probe_undecided", message };
}

function hintOf(wrong: readonly ProbeFigure[]): string {
  if (wrong.every(({ groupBy }) => groupBy === "user" || groupBy === "api_key"))
    return ". If the deployment traces as these, name them with --user and --short-key";
  const isSurplus = wrong.every(({ difference }) => difference > 0);
  return isSurplus ? ". Traces of an earlier probe that were billed late count here too" : "";
}

export function describeRises(rises: readonly Rise[]): string {
  return rises.map(({ id, traces }) => `${id} ${traces > 0 ? "+" : ""}${traces}`).join(", ");
}

/** Makes the stand-in's assistant slow, so that a rollback finds the run active. Other assistants ignore this. */
const SLOW = "delay=60000";
const RUN_WITHIN_MS = 120_000;
type Traffic = Pick<ProbeRequest, "deployment" | "assistant" | "onTrace" | "onNoA2a">;
/** Two plain runs, two of a rollback, two A2A messages. */
export const PROBE_TRACES = 6;
export const A2A_TRACES = 2;

/** Every message contains `mark`. Nothing is sent twice. Returns the number of traces. */
async function sendTraffic(
  { deployment: { threads, a2a }, assistant: assistantId, onTrace = () => {}, onNoA2a = () => {} }: Traffic,
  { mark, signal }: { mark: string; signal?: AbortSignal },
): Promise<number> {
  // A refusal after the first run would waste what the runs cost. `http.disable_a2a` removes the card together with the endpoint.
  const card = await a2a.card(assistantId, { signal }).catch((error: unknown) => {
    if (!(error instanceof PlatformError) || error.retryable) throw error;
    onNoA2a(error.message);
  });
  let sent = 0;
  const within = { withinMs: RUN_WITHIN_MS, signal };
  const start = (threadId: string, text: string, strategy?: "rollback") => {
    onTrace(++sent);
    return threads.createRun({ threadId, assistantId, text: `${mark}: ${text}`, strategy }, { signal });
  };
  // A deleted run may not have begun, so nobody knows whether its trace must be billed.
  const refuseDeleted = ({ status, runId }: { status: string; runId: string }) => {
    if (status !== "rolled_back") return;
    throw new EtlError({
      code: "probe_run_deleted",
      message: `Run ${runId} of the probe was deleted by another client.`,
      next: "Choose a deployment that no other client calls, and run the probe again.",
    });
  };
  for (const text of ["first plain run", "second plain run"]) {
    const { threadId } = await threads.createThread({ signal });
    refuseDeleted(await threads.join(await start(threadId, text), within));
  }
  const { threadId } = await threads.createThread({ signal });
  refuseDeleted(await threads.waitForStart(await start(threadId, `to be rolled back ${SLOW}`), within));
  refuseDeleted(await threads.join(await start(threadId, "rolls back", "rollback"), within));
  if (card === undefined) return sent;
  onTrace(++sent);
  try {
    await a2a.send({ assistantId, text: `${mark}: sent` }, within);
  } catch (error) {
    if (!(error instanceof RpcError) || !error.isRefusal) throw error;
    onNoA2a(error.message);
    return sent - 1;
  }
  onTrace(++sent);
  for await (const event of a2a.stream({ assistantId, text: `${mark}: streamed` }, within)) {
    if (event.final) break;
  }
  return sent;
}

interface UsageReading {
  readonly readings: ProbeReadings;
  readonly projectId: string | undefined;
  readonly home: string | undefined;
}

/**
 * Reads usage since a UTC midnight, in epoch ms. `before`: the reading before the traffic. Projects are read first before the
 * traffic and last after it (see `compareProbe`). Projects of other workspaces are read only if their usage changed. Errors:
 * `probe_project_ambiguous`, and those of a request.
 */
async function readUsage(
  source: OpenSource,
  { start, project, before }: { start: number; project: string; before?: UsageReading },
): Promise<UsageReading> {
  const all = source.workspaceIds;
  const empty = (): WorkspaceReading => ({ workspace: 0, project: {}, user: {}, api_key: {} });
  const readings = new Map(all.map((id) => [id, empty()]));
  const homes = new Map<string, string>();
  const read = async (groupBy: GroupBy, ids: readonly string[]) => {
    const usage = { meter: "traces", groupBy } as const;
    const members = ids.map((workspaceId) => ({ workspaceId }));
    for (const batch of batchesOf(usage, members)) {
      // The end is set when the request is sent. Set earlier, it would miss usage after a wait over midnight.
      const response = await sendRequest(source, async () => {
        const now = await storeNow(source.store.db);
        const end = source.capabilities.has("no_future_end") ? now : ceilToGrid(now, DAY_MS);
        const window = { start, end, stride: strideOfRange(end - start) };
        return addUpUsable(source, { ...usage, members: batch, window });
      });
      const keys = [...response.keys];
      for (const { id: key, traces } of response.rows()) {
        const { dimensionId: id = "", names = [] } = keys[key] ?? {};
        const workspaceId = groupBy === "workspace" ? id : (batch[0]?.workspaceId ?? "");
        const reading = readings.get(workspaceId);
        if (reading === undefined) continue;
        if (groupBy === "workspace") reading.workspace += traces;
        else reading[groupBy][id] = (reading[groupBy][id] ?? 0) + traces;
        const isMeant = id === project.toLowerCase() || names.some(({ name }) => name === project);
        if (groupBy === "project" && isMeant) homes.set(id, workspaceId);
      }
    }
  };
  if (before === undefined) await read("project", all);
  await read("workspace", all);
  const near = before?.home === undefined ? all : [before.home];
  await read("user", near);
  await read("api_key", near);
  if (before !== undefined) {
    const isChanged = (id: string) => readings.get(id)?.workspace !== before.readings.get(id)?.workspace;
    await read("project", [...near, ...all.filter((id) => !near.includes(id) && isChanged(id))]);
  }
  const [[projectId, home] = [], ...rest] = homes;
  if (rest.length === 0) return { readings, projectId, home };
  throw new UsageError({
    code: "probe_project_ambiguous",
    message: `${homes.size} projects have the name ${JSON.stringify(project)}: ${[...homes.keys()].join(", ")}.`,
    next: "Set --project to the id of the project that the deployment traces into.",
  });
}

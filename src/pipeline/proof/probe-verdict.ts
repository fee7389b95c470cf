import type { ProbeFigure } from "../../domain/proof/probe.ts";
import {
  type Conclusion,
  concludeProbe,
  conclusionOf,
  hasUnsettledProbe,
  type OpenProbe,
  type ProbeTiming,
  type ProbeVerdict,
} from "../../store/proof/probes.ts";
import type { OpenSource } from "../source/source.ts";

/** Without figures where nothing was compared. */
export interface ProbeResult extends Pick<Conclusion, "probeId" | "state" | "figures" | "code" | "message"> {
  /** Whether another process sent the traffic. */
  readonly resumed: boolean;
  readonly expected: number;
  /** Milliseconds from the last trace sent to the first answer that held some of it; null where none did. */
  readonly firstDelayMs: number | null;
  /** To the answer that held all of it, where it stayed so; else null. */
  readonly delayMs: number | null;
  /** The limit of `delayMs`; null where there is none. */
  readonly lateAfterMs: number | null;
  /** What ended it before anything was compared. */
  readonly cause?: unknown;
}

/** What the platform bills of a probe, by one reading. */
export interface Look {
  readonly figures: readonly ProbeFigure[];
  readonly workspaceId: string | undefined;
  readonly projectId: string | undefined;
  /** By Postgres's clock, before the first request of the reading. */
  readonly at: number;
}

/** For so long, traces that an earlier probe lacked may still be billed and appear in the figures of this one. */
const LATE_FOR_DAYS = 7;
const SENDER_IS_SET =
  "If these are the user and key that the deployment traces as, set USAGE_PROBE_USER and USAGE_PROBE_SHORT_KEY";
/** A look begins so soon after the limit; one that finds all billed is in time. */
const LIMIT_WITHIN_MS = 1_000;

/** `seen` is the look that is due now, undefined where the platform did not answer; `last` is the last one answered. */
export async function judge(
  source: OpenSource,
  probe: OpenProbe,
  { seen, last, timing }: { seen: Look | undefined; last: Look | undefined; timing: ProbeTiming },
): Promise<ProbeResult> {
  const { figures = [], workspaceId, projectId } = last ?? {};
  const end = (state: ProbeVerdict, code?: string, ...said: readonly (string | undefined)[]) => {
    const message = said.filter((one) => one !== undefined).join(". ") || undefined;
    return conclude(source, probe, { state, code, message, figures, workspaceId, projectId, ...timing });
  };
  if (seen === undefined) {
    const what =
      last === undefined
        ? "request for usage before the deadline"
        : "request for usage when the verdict was due";
    return end("inconclusive", "probe_unanswered", `The platform answered no ${what}.`);
  }
  const lateness = latenessOf(probe, timing);
  const wrong = figures.filter((figure) => figure.difference !== 0);
  if (wrong.length > 0) {
    const said = wrong.map((figure) => describeDifference(figure)).join("; ");
    if (await mayBeEarlier(source, probe, wrong)) {
      const why = "an earlier probe ended without all of its traces, which may be these";
      return end("inconclusive", "probe_earlier_late", `${said}; ${why}`);
    }
    const isOnlySender = wrong.every(({ groupBy }) => groupBy === "user" || groupBy === "api_key");
    return end("differs", "probe_differs", said, isOnlySender ? SENDER_IS_SET : undefined);
  }
  const others = describeOthers(figures);
  if (lateness.state === "late") return end("late", "probe_late", lateness.said, others);
  if (others !== undefined || lateness.state === "undecided") {
    return end("inconclusive", "probe_undecided", others, lateness.said);
  }
  return end("matched");
}

function describeDifference({ groupBy, billed, difference, expectedId, rises }: ProbeFigure): string {
  const many = difference > 0 ? "many" : `few${expectedId === null ? "" : ` for ${expectedId}`}`;
  const changed = rises.map(({ id, traces }) => `${id} ${traces > 0 ? "+" : ""}${traces}`).join(", ");
  const rose = changed === "" ? "" : ` (rose: ${changed})`;
  return `${groupBy}: ${billed} billed, ${Math.abs(difference)} too ${many}${rose}`;
}

/** Others' traffic in the workspace cannot be told from the probe's, so only the rise of its own project is decided. */
function describeOthers(figures: readonly ProbeFigure[]): string | undefined {
  const other = figures.find(({ othersAdded, othersRemoved }) => othersAdded + othersRemoved > 0);
  if (other === undefined) return undefined;
  const { othersAdded, othersRemoved } = other;
  return (
    `The project rose by what was sent, but other projects of the workspace rose by ${othersAdded} and fell by ` +
    `${othersRemoved} traces meanwhile. Not decided: to which user and API key the probe's traces were billed, and ` +
    "whether some were billed again to another project. Give the deployment a workspace of its own"
  );
}

/** Late is what a look at the limit or after it still lacked. */
function latenessOf(
  { sentAt = 0, lateAfterMs }: OpenProbe,
  { unbilledAt = 0, billedAt = 0 }: ProbeTiming,
): { state: "in time" | "late" | "undecided"; said?: string } {
  if (lateAfterMs === undefined) return { state: "in time" };
  const limit = sentAt + lateAfterMs;
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  const all = `All traces were billed ${seconds(billedAt - sentAt)} after the last one`;
  const over = `USAGE_PROBE_LATE_AFTER is ${seconds(lateAfterMs)}`;
  if (unbilledAt >= limit) return { state: "late", said: `${all}; ${over}` };
  if (billedAt <= limit + LIMIT_WITHIN_MS) return { state: "in time" };
  return {
    state: "undecided",
    said: `${all} at the latest; ${over}. Not decided: whether that was late, since nobody looked in between`,
  };
}

/** Whether a surplus may be what an earlier probe lacked. */
async function mayBeEarlier(
  { sourceId, store }: OpenSource,
  { probeId }: OpenProbe,
  wrong: readonly ProbeFigure[],
): Promise<boolean> {
  if (wrong.some((figure) => figure.difference < 0)) return false;
  return hasUnsettledProbe(store.db, { sourceId, probeId, days: LATE_FOR_DAYS });
}

/** Gives a probe its verdict, or returns the one that another process gave it. */
export async function conclude(
  source: OpenSource,
  probe: OpenProbe,
  end: Omit<Conclusion, "probeId">,
): Promise<ProbeResult> {
  const { probeId, expected, sentAt, lateAfterMs = null } = probe;
  const isOurs = await concludeProbe(source.store, { probeId, ...end });
  // Another process that waited for the same traffic may have been first. Its verdict stands.
  const given = isOurs ? end : await conclusionOf(source.store.db, probeId);
  const { state, figures, firstBilledAt, billedAt, code, message } = given;
  source.log.info({ probe: probeId, state, expected, code }, "probe");
  const since = (at: number | undefined) =>
    at === undefined || sentAt === undefined ? null : Math.max(0, at - sentAt);
  const delays = { firstDelayMs: since(firstBilledAt), delayMs: since(billedAt), lateAfterMs };
  return { probeId, state, resumed: false, expected, figures, ...delays, code, message };
}

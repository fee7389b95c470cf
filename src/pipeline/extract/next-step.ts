import type { FetchStamp } from "../../domain/coverage/coverage.ts";
import {
  scopeIdsOf,
  type UnstoredRequest,
  type UsageRequest,
  workspaceIdsOf,
} from "../../domain/planning/request.ts";
import { scopesOf } from "../../store/catalog/scopes.ts";
import { learnCapability } from "../../store/catalog/server-capabilities.ts";
import { learnMeter } from "../../store/catalog/source-meters.ts";
import { failScopes } from "../../store/load/failures.ts";
import type { OpenSource } from "../source/source.ts";
import type { NextStep } from "./split.ts";

/**
 * Carries out the next step of a task that was not loaded: learns a server capability, keeps a failure. Returns the
 * requests that take the task's place.
 */
export async function takeNextStep(
  source: OpenSource,
  task: UsageRequest,
  { stamp, step }: { stamp: FetchStamp; step: NextStep },
): Promise<UsageRequest[]> {
  const { store, sourceId, log } = source;
  const { code, message, outcome } = step;
  source.splitLimit.refused();
  log.warn({ task: describe(task), code, reason: message, outcome }, "task not loaded");
  if (step.learn !== undefined) {
    source.capabilities.add(step.learn);
    await learnCapability(store.db, { sourceId, capability: step.learn, evidence: message });
  }
  if (step.ends !== undefined) {
    source.meters.delete(step.ends);
    await learnMeter(store.db, { sourceId, meter: step.ends, state: "notAvailable", evidence: message });
  }
  if (step.keep) {
    const failure = { scopeIds: scopeIdsOf(task), period: task.window, stamp };
    await failScopes(store, { ...failure, state: "failed", code, message });
  }
  return Promise.all(step.parts.map((part) => withScopes(source, part)));
}

async function withScopes({ store, sourceId }: OpenSource, part: UnstoredRequest): Promise<UsageRequest> {
  const { meter, groupBy, window } = part;
  const workspaceIds = workspaceIdsOf(part);
  const { stride } = window;
  const scopeIds = await scopesOf(store.db, { sourceId, meter, groupBy, stride, workspaceIds });
  const members = workspaceIds.map((workspaceId, i) => ({ workspaceId, scopeId: scopeIds[i] as number }));
  return { meter, groupBy, window, members };
}

/** A task in a log line. */
export function describe({ meter, groupBy, window, members }: UsageRequest): object {
  return {
    meter,
    groupBy,
    stride: window.stride,
    from: new Date(window.start).toISOString(),
    to: new Date(window.end).toISOString(),
    workspaces: members.length,
  };
}

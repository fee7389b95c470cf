import { enqueueSoon } from "../../jobs/enqueue.ts";
import type { JobContext } from "../../jobs/job.ts";
import { fetchQueueOf } from "../../jobs/queues.ts";
import { startWorkers } from "../../jobs/workers.ts";
import { systemClock } from "../clock.ts";
import type { Config, SourceConfig } from "../config/config.ts";
import { staleAfterOf } from "../pipeline/alerts.ts";
import type { FilesSettings } from "../pipeline/export/write-files.ts";
import { withinQueue } from "../pipeline/source/source-handle.ts";
import { deploymentClientsOf } from "../platform/clients.ts";
import { releaseOf } from "../root.ts";
import { createFetchProgress, watchQueue } from "./fetch-progress.ts";
import type { LimitedSource, Shared } from "./limited-source.ts";

/** Takes the jobs of a source. Returns the closer, which waits until running jobs have ended. */
export function startWork(
  source: SourceConfig,
  { handle, fetchShare, gate, holdBack }: LimitedSource,
  { config, queues, metrics, state, clockOff, log, warn, signal }: Shared,
): () => Promise<void> {
  const { slug } = source;
  const probe = openProbe(config, source);
  const progress = createFetchProgress(systemClock);
  const stopWatching = watchQueue(queues.of(slug).fetch, progress, () => gate.isHeld() || clockOff.isHeld());
  state.fetching.set(slug, progress);
  const context: JobContext = {
    source: handle,
    fetchQueue: fetchQueueOf(queues.of(slug).fetch),
    enqueueSoon: () => enqueueSoon(queues.of(slug).control),
    userEmail: config.userEmail,
    alerts: {
      slug,
      webhookUrl: config.alertWebhookUrl?.reveal(),
      staleAfterMs: staleAfterOf(config.syncEveryMs),
    },
    probe: probe?.request,
    files: filesSettings(config, slug),
    gate,
    holdBack,
    log,
    clock: systemClock,
    signal,
  };
  const noteAlive = () => {
    state.lastJobAt = systemClock.now();
  };
  const closeWorkers = startWorkers({
    slug,
    contexts: { control: context, fetch: { ...context, source: withinQueue(handle) } },
    limiter: fetchShare,
    clockOff,
    connect: queues.connectWorker,
    prefix: queues.prefix,
    telemetry: queues.telemetry,
    warn,
    watcher: {
      onTaken: noteAlive,
      onAnswer: noteAlive,
      onWork: (queue) => (queue === "fetch" ? progress.begin() : () => {}),
      onDone: (done) => metrics.jobDone({ ...done, source: slug }),
      onFailed: (failed) => metrics.jobFailed({ ...failed, source: slug }),
    },
  });
  return () => {
    stopWatching();
    return closeWorkers().finally(() => probe?.close());
  };
}

/** Undefined: no place for files is configured. */
function filesSettings(config: Config, source: string): FilesSettings | undefined {
  const { address, ...files } = config.files;
  if (address === undefined) return undefined;
  return { ...files, address, source, release: releaseOf() };
}

/** The deployment that the source's meter probe talks to; undefined if none is configured. */
function openProbe(config: Config, source: SourceConfig) {
  const { deploymentUrl, probeProject: project } = source;
  if (deploymentUrl === undefined || project === undefined) return undefined;
  const deployment = deploymentClientsOf(source);
  const { probeAssistant: assistantId, probeTimes } = config;
  return { request: { deployment, project, assistantId, ...probeTimes }, close: () => deployment.close() };
}

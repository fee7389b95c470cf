import type { Command } from "commander";
import { syncJob } from "../../../jobs/sync.ts";
import { requireSources } from "../../core/base/config.ts";
import type { RedisServer } from "../../core/base/redis-server.ts";
import { learnMeters } from "../../core/pipeline/source/learn-meters.ts";
import { keptDemand, routineDemand } from "../../core/pipeline/sync/plan.ts";
import { planRoutine } from "../../core/pipeline/sync/sync.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import { retryNow } from "../../core/store/catalog/failures.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import { EXIT } from "../../terminal/exit.ts";
import { exitOfRange } from "../../terminal/load-report.ts";
import { withSource } from "../../terminal/options.ts";
import { addJob, openSessionQueue, queryRedis } from "../../terminal/queue.ts";
import { commandActor, inSessionOfSource, type Session } from "../../terminal/session.ts";
import { loadInline } from "../../terminal/sources.ts";

export const examples = [
  ["sync", "through the queue of the running service"],
  ["sync --inline --source emea", "load one source in this process"],
] as const;

export function define(command: Command): void {
  withSource(command).option("--inline", "run in this process, without Redis").action(inSessionOfSource(run));
}

async function run(session: Session, options: { inline?: boolean }): Promise<number> {
  if (options.inline !== true) return queryService(session);
  return loadInline(
    session,
    "sync",
    async (source, now) => {
      const order = { sourceId: source.sourceId, action: "sync.start", detail: "inline" };
      await recordAction(source.store.db, commandActor(), order);
      await retryNow(source.store.db, source.sourceId);
      await learnMeters(source);
      const wanted = routineDemand(source, now);
      const { workspaceIds } = source;
      const requested = { wanted: keptDemand(source, now), workspaceIds };
      return { requested, tasks: await planRoutine(source, { wanted }) };
    },
    // No sync can load a stride that the server does not offer.
    (lines) => exitOfRange(lines.filter(({ status }) => status !== "not_available")),
  );
}

async function queryService(session: Session): Promise<number> {
  const redis = await queryRedis(session);
  const requested: string[] = [];
  const { db } = await session.migratedStore();
  const known = await listSources(db);
  for (const { slug } of requireSources(session.config)) {
    const source = known.find((one) => one.source === slug);
    if (source !== undefined) await retryNow(db, source.sourceId);
    const queue = await openSessionQueue(session, "control", { redis, slug });
    const options = { ...syncJob.options, jobId: `asked-${Date.now()}` };
    await addJob(queue, { redis, name: syncJob.name, options });
    const order = {
      sourceId: source?.sourceId ?? null,
      action: "sync.start",
      detail: `source ${slug}, by the service`,
    };
    await recordAction(db, commandActor(), order);
    requested.push(slug);
  }
  session.output.data(
    requested.map((source) => ({ source, requested: true })),
    () => `The service was asked to sync ${requested.join(", ")}. \`usage-etl status\` shows the progress.`,
  );
  await noteIdle(session, redis, requested);
  return EXIT.done;
}

/** Warns if no worker would take the jobs. Silent if Redis does not list its clients. */
async function noteIdle({ output }: Session, redis: RedisServer, slugs: readonly string[]): Promise<void> {
  const { lookAtRedis } = await import("../../../jobs/redis-view.ts");
  const view = await lookAtRedis(redis, slugs).catch(() => undefined);
  const idle = slugs.filter((slug) => view?.sources.get(slug)?.workers === 0);
  if (idle.length === 0) return;
  const whose = idle.length === slugs.length ? "" : ` for ${idle.join(", ")}`;
  output.note(`No worker is connected${whose}: start \`usage-etl serve\`, or use \`--inline\`.`);
}

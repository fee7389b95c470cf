import type { Command } from "commander";
import { syncJob } from "../../../jobs/sync.ts";
import { requireSources } from "../../config/config.ts";
import { routineDemand } from "../../pipeline/sync/plan.ts";
import { retryAfterOutage } from "../../store/load/outage.ts";
import { EXIT } from "../session/exit.ts";
import { loadInline } from "../session/load-inline.ts";
import { openSessionQueue, requireRedis } from "../session/queue.ts";
import { inSession, type Session } from "../session/session.ts";

export function addSyncCommand(program: Command): void {
  program
    .command("sync")
    .description("fetch whatever is missing or not final")
    .option("--inline", "run in this process, without Redis")
    .action(inSession(run));
}

async function run(session: Session, options: { inline?: boolean }): Promise<number> {
  if (options.inline !== true) return askService(session);
  return loadInline(session, async (source, now) => {
    await retryAfterOutage(source.store.db, source.sourceId);
    return { wanted: routineDemand(source, now), reprocess: "missing" };
  });
}

/** Asks the service to sync now instead of at its next scheduled time. */
async function askService(session: Session): Promise<number> {
  const redisUrl = requireRedis(session);
  const asked: string[] = [];
  for (const { slug } of requireSources(session.config)) {
    const queue = openSessionQueue(session, "control", { redisUrl, slug });
    await queue.add(syncJob.name, {}, { ...syncJob.options, jobId: `asked-${Date.now()}` });
    asked.push(slug);
  }
  session.output.data(
    { asked },
    () => `The service was asked to sync ${asked.join(", ")}. \`usage-etl status\` shows the progress.`,
  );
  return EXIT.done;
}

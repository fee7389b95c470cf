import type { Command } from "commander";
import { DAY_MS, HOUR_MS } from "../../core/domain/time/stride.ts";
import { pruneLedgers } from "../../core/pipeline/upkeep.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import { cellsOf, table, withoutZeros } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";

type Pruned = { readonly source: string } & Awaited<ReturnType<typeof pruneLedgers>>;

export const examples = [
  ["prune", "what the nightly job does"],
  ["prune --json", "the same for a script, which reads how much was deleted"],
] as const;

export function define(command: Command): void {
  command.action(inSession(run));
}

async function run({ config, output, ...session }: Session): Promise<undefined> {
  const store = await session.migratedStore();
  const keepDays = Math.max(1, Math.ceil(config.keepHistoryMs / DAY_MS));
  const keepHours = config.hourlyKeepMs === undefined ? undefined : Math.ceil(config.hourlyKeepMs / HOUR_MS);
  const pruned: Pruned[] = [];
  for (const { sourceId, source } of await listSources(store.db)) {
    pruned.push({
      source,
      ...(await pruneLedgers(store, { sourceId, keepDays, keepHours, userEmail: config.userEmail })),
    });
  }
  output.data(pruned, () => {
    const cells = cellsOf(pruned, {
      source: "source",
      requests: "fetches",
      "fetch tasks": "tasks",
      restatements: "restatements",
      "intervals merged": "fragments",
      "user names": "userNames",
      hours: "hours",
    });
    const [head, rows] = withoutZeros(...cells);
    return head.length > 1 ? `Removed:\n${table(head, rows)}` : "Nothing was old enough to be removed.";
  });
}

import type { Command } from "commander";
import { pruneLedgers } from "../../pipeline/prune.ts";
import { listSources } from "../../store/report/overview.ts";
import { table } from "../report/output.ts";
import { inSession, type Session } from "../session/session.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

type Pruned = { readonly source: string } & Awaited<ReturnType<typeof pruneLedgers>>;

export function addPruneCommand(program: Command): void {
  program
    .command("prune")
    .description(
      "delete what is older than USAGE_KEEP_HISTORY and USAGE_HOURLY_KEEP, and user names not allowed by USAGE_USER_EMAIL",
    )
    .action(inSession(run));
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
  output.data(pruned, () =>
    table(
      [
        "source",
        "requests removed",
        "fetch tasks removed",
        "restatements removed",
        "loaded intervals merged",
        "user names removed",
        "hours removed",
      ],
      pruned.map((one) => [
        one.source,
        one.fetches,
        one.slices,
        one.restatements,
        one.fragments,
        one.userNames,
        one.hours,
      ]),
    ),
  );
}

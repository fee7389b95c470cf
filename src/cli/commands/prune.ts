import type { Command } from "commander";
import { pruneLedgers } from "../../pipeline/prune.ts";
import { listSources } from "../../store/report/overview.ts";
import { table } from "../report/output.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

type Pruned = { readonly source: string } & Awaited<ReturnType<typeof pruneLedgers>>;

export function addPruneCommand(program: Command): void {
  program
    .command("prune")
    .description(
      "keep what the retention settings say: ledgers for USAGE_KEEP_HISTORY, hours for USAGE_HOURLY_KEEP, names as USAGE_USER_EMAIL says",
    )
    .action(inSession(run));
}

async function run({ config, output, ...session }: Session): Promise<undefined> {
  const store = await session.store();
  await requireSchema(store);
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
        "slices removed",
        "restatements removed",
        "coverage joined",
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

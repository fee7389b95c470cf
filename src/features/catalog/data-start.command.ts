import { type Command, InvalidArgumentError } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { isDay } from "../../core/domain/time/days.ts";
import { dataStartProblem } from "../../core/pipeline/source/data-start.ts";
import { type ListedSource, listSources } from "../../core/store/activity/overview.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { linesOf, tableOf } from "../../terminal/output.ts";
import { commandActor, inSession, type Session } from "../../terminal/session.ts";
import { moveDataStart } from "./move-data-start.store.ts";
import { storedSource, storedSources } from "./named.ts";

export const examples = [
  ["data-start", "the first day of each source"],
  ["data-start 2026-03-01 --source emea", "load nothing before March"],
] as const;

export function define(command: Command): void {
  command
    .argument("[day]", "the new data start, such as 2026-03-01", parseDay)
    .option("--source <slug>", "only this source; needed to move one of several")
    .action(inSession(run));
}

async function run(
  session: Session,
  { source: slug }: { source?: string },
  day?: string,
): Promise<undefined> {
  const store = await session.migratedStore();
  const find = async () => storedSources(await listSources(store.db), slug);
  const meant = await find();
  const configuredOf = (of: string) =>
    session.config.sources.find((one) => one.slug === of)?.dataStart ?? null;
  const one = day === undefined ? undefined : storedSource(meant, slug);
  if (day !== undefined && one !== undefined && day !== one.dataStart) {
    refuseMove(one, { day, configured: configuredOf(one.source), now: await storeNow(store.db) });
    await moveDataStart(store, { sourceId: one.sourceId, to: day, by: commandActor() });
  }
  const shown = (await find()).map(({ source, dataStart }) => {
    const configured = configuredOf(source);
    const problem =
      configured === null ? undefined : dataStartProblem(source, { stored: dataStart, configured });
    return { source, dataStart, configured, problem: problem ?? null };
  });
  session.output.data(shown, () =>
    linesOf(
      tableOf(shown, { source: "source", "data start": "dataStart", configured: "configured" }),
      shown.map(({ problem }) => problem !== null && `${problem.message} ${problem.next} [${problem.code}]`),
    ),
  );
}

function parseDay(text: string): string {
  if (isDay(text)) return text;
  throw new InvalidArgumentError("It is not a day such as 2026-03-01.");
}

function refuseMove(
  { source, dataStart }: ListedSource,
  { day, configured, now }: { day: string; configured: string | null; now: number },
): void {
  const what = `The data start of source ${source} cannot move from ${dataStart} to ${day}`;
  if (day < dataStart) {
    throw new UsageError({
      code: "data_start_earlier",
      message: `${what}: this command can only move it to a later day.`,
      next: `Set USAGE_DATA_START=${day}. The next sync moves the data start and fetches the days from then on.`,
    });
  }
  if (Date.parse(day) > now) {
    throw new UsageError({
      code: "data_start_future",
      message: `${what}: that day has not begun.`,
      next: "Choose a day that has begun.",
    });
  }
  if (configured === null || configured >= day) return;
  throw new UsageError({
    code: "data_start_configured",
    message: `${what}: USAGE_DATA_START is ${configured}, and the next sync would move the data start back to that day.`,
    next: `Set USAGE_DATA_START=${day} first, for every process of this source.`,
  });
}

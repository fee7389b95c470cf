import type { Command } from "commander";
import { UsageError } from "../../errors.ts";
import { forgetSource } from "../../store/catalog/forget.ts";
import { listKnownSources } from "../../store/catalog/known.ts";
import { describeForgotten } from "../report/forget-report.ts";
import { instant, table } from "../report/output.ts";
import { commandActor } from "../session/operator.ts";
import { inSession, type Session } from "../session/session.ts";
import { storedSource } from "../session/stored-source.ts";

interface ForgetOptions {
  readonly withRecords?: boolean;
  readonly dryRun?: boolean;
}

export function define(source: Command): void {
  source
    .command("list")
    .description("show the stored sources, and whether they are configured")
    .action(inSession(list));
  withForgetting(source.command("forget <slug>"))
    .description("remove a source that is not configured any more, with all that depends on it")
    .action(inSession(forget));
}

export function withForgetting(command: Command): Command {
  return command
    .option("--with-records", "also if it holds records, restatements or prices")
    .option("--dry-run", "only show what would go");
}

async function list({ config, output, ...session }: Session): Promise<undefined> {
  const { db } = await session.migratedStore();
  const configured = new Set(config.sources.map(({ slug }) => slug));
  const rows = (await listKnownSources(db)).map(({ sourceId: _, ...one }) => ({
    ...one,
    configured: configured.has(one.source),
  }));
  output.data(rows, () =>
    rows.length === 0
      ? "No source is stored. `usage-etl sync --inline` enters those that are configured."
      : table(
          ["source", "configured", "workspaces", "closed months", "data start", "last request"],
          rows.map((one) => [
            ...[one.source, one.configured ? "yes" : "no", one.workspaces, one.closedMonths, one.dataStart],
            one.lastRequestAt === null ? null : instant(one.lastRequestAt),
          ]),
        ),
  );
}

async function forget(session: Session, options: ForgetOptions, slug: string): Promise<undefined> {
  const store = await session.migratedStore();
  const { sourceId } = storedSource(await listKnownSources(store.db), slug);
  if (session.config.sources.some((one) => one.slug === slug)) {
    throw new UsageError({
      code: "source_configured",
      message: `Source ${slug} is configured, so the next sync would enter it again.`,
      next: "Take it out of the configuration of every process first (USAGE_SOURCES_FILE, or USAGE_BASE_URL and USAGE_API_KEY).",
    });
  }
  const { withRecords = false, dryRun = false } = options;
  const result = await forgetSource(store, { sourceId, slug, withRecords, dryRun, by: commandActor() });
  const again = `source forget ${slug}${withRecords ? " --with-records" : ""}`;
  session.output.data({ source: slug, ...result }, () => describeForgotten(`Source ${slug}`, result, again));
}

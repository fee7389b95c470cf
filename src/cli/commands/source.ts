import type { Command } from "commander";
import { UsageError } from "../../errors.ts";
import { type Forgotten, forgetSource } from "../../store/catalog/forget.ts";
import { listKnownSources } from "../../store/catalog/known.ts";
import { instant, table } from "../report/output.ts";
import { commandActor, inSession, type Session } from "../session/session.ts";

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

const PARTS = [
  ["records", "records"],
  ["restatements", "restatements"],
  ["loadedIntervals", "loaded intervals"],
  ["failures", "kept failures"],
  ["differences", "differences"],
  ["fetchTasks", "fetch tasks"],
  ["prices", "prices"],
] as const;

/** What a workspace or a source held, and whether it is gone: `Workspace ... of source default is forgotten. ...`. */
export function describeForgotten(what: string, { forgotten, held }: Forgotten, again: string): string {
  const parts = PARTS.filter(([key]) => held[key] > 0).map(
    ([key, name]) => `${held[key].toLocaleString("en-US")} ${name}`,
  );
  const leftOut =
    held.leftOutMonths.length === 0 ? [] : [`its mention as left out of ${held.leftOutMonths.join(", ")}`];
  const all = [...parts, ...leftOut];
  if (forgotten) {
    return `${what} is forgotten${all.length === 0 ? ". Nothing else depended on it." : `, with ${all.join(", ")}.`}`;
  }
  const go = all.length === 0 ? "Nothing else would go with it." : `With it would go: ${all.join(", ")}.`;
  return `${what} was not forgotten, since --dry-run was given. ${go}\nTo forget it, run \`usage-etl ${again}\`.`;
}

/** The one of these that is meant. Error: `source_unknown` where none has the slug, or several are there and none is named. */
export function storedSource<S extends { readonly source: string }>(
  stored: readonly S[],
  slug: string | undefined,
): S {
  const meant = slug === undefined ? stored : stored.filter(({ source }) => source === slug);
  const [first] = meant;
  if (first !== undefined && meant.length === 1) return first;
  throw new UsageError({
    code: "source_unknown",
    message:
      first === undefined
        ? `${slug === undefined ? "No source" : `Source ${slug}`} is stored.`
        : "Several sources are stored.",
    next:
      first === undefined
        ? "Run `usage-etl source list` to see the stored sources."
        : `Name one with --source: ${meant.map(({ source }) => source).join(", ")}.`,
  });
}

import type { Command } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { count, instant, linesOf, tableOf } from "../../terminal/output.ts";
import { commandActor, inSession, type Session } from "../../terminal/session.ts";
import type { Feature } from "../feature.ts";
import { type Forgotten, forgetSource } from "./forget.store.ts";
import { listKnownSources } from "./known.store.ts";
import { storedSource } from "./named.ts";

export interface ForgetOptions {
  readonly withRecords?: boolean;
  readonly dryRun?: boolean;
}

export const examples = [
  ["source list", "what is stored of each"],
  ["source forget emea --dry-run", "what would go"],
] as const;

export function define(source: Command, features: readonly Feature[]): void {
  source
    .command("list")
    .description("show the stored sources, and whether they are configured")
    .action(inSession(list));
  withForgetting(source.command("forget <slug>"))
    .description("remove a source that is no longer configured, with everything that is stored about it")
    .action(
      inSession((session: Session, options: ForgetOptions, slug = "") =>
        forget(session, options, { slug, features }),
      ),
    );
}

export function withForgetting(command: Command): Command {
  return command
    .option("--with-records", "also if it holds records, restatements or prices")
    .option("--dry-run", "only show what would be removed");
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
      ? "No source is stored. `usage-etl sync --inline` stores the configured ones."
      : tableOf(rows, {
          source: "source",
          configured: (one) => (one.configured ? "yes" : "no"),
          workspaces: "workspaces",
          "closed months": "closedMonths",
          "data start": "dataStart",
          "last request": ({ lastRequestAt }) => lastRequestAt && instant(lastRequestAt),
        }),
  );
}

async function forget(
  session: Session,
  options: ForgetOptions,
  { slug, features }: { slug: string; features: readonly Feature[] },
): Promise<undefined> {
  const { config, output } = session;
  const store = await session.migratedStore();
  const { withRecords = false, dryRun = false } = options;
  const outside = await Promise.all(
    features.flatMap((feature) => feature.outside?.().then((find) => find(session, slug)) ?? []),
  );
  const stored = await listKnownSources(store.db);
  // An earlier attempt may have ended before it removed all that is outside.
  const isGone = stored.every(({ source }) => source !== slug) && outside.some((kept) => kept.count > 0);
  const sourceId = isGone ? undefined : storedSource(stored, slug).sourceId;
  if (config.sources.some((one) => one.slug === slug)) {
    throw new UsageError({
      code: "source_configured",
      message: `Source ${slug} is configured, so the next sync would add it again.`,
      next: "Remove the source from the configuration of every process first (USAGE_SOURCES_FILE, or USAGE_BASE_URL and USAGE_API_KEY).",
    });
  }
  const result =
    sourceId === undefined
      ? undefined
      : await forgetSource(store, { sourceId, slug, withRecords, dryRun, by: commandActor() });
  if (!dryRun) for (const kept of outside) await kept.remove();
  const again = `source forget ${slug}${withRecords ? " --with-records" : ""}`;
  const data = {
    source: slug,
    ...(result ?? { forgotten: !dryRun }),
    outside: outside.map((kept) => ({ count: kept.count, what: kept.what })),
  };
  output.data(data, () =>
    linesOf([
      result === undefined
        ? `The database does not know source ${slug}.`
        : describeForgotten(`Source ${slug}`, result, again),
      ...outside.map(
        (kept) => kept.count > 0 && `${dryRun ? "Also" : "Removed"}: ${count(kept.count)} ${kept.what}.`,
      ),
    ]),
  );
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

export function describeForgotten(what: string, { forgotten, held }: Forgotten, again: string): string {
  const { leftOutMonths } = held;
  const all = PARTS.filter(([key]) => held[key] > 0).map(([key, name]) => `${count(held[key])} ${name}`);
  if (leftOutMonths.length > 0) all.push(`its mention as left out of ${leftOutMonths.join(", ")}`);
  const isAlone = all.length === 0;
  if (forgotten)
    return `${what} is forgotten${isAlone ? ". Nothing else depended on it." : `, with ${all.join(", ")}.`}`;
  const go = isAlone ? "Nothing else would be removed." : `With it would go: ${all.join(", ")}.`;
  return `${what} was not forgotten, since --dry-run was given. ${go}\nTo forget it, run \`usage-etl ${again}\`.`;
}

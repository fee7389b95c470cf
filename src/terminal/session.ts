import { userInfo } from "node:os";
import type { Command } from "commander";
import { type Config, readConfig, requireDatabaseUrl } from "../core/base/config.ts";
import { withEnvFile } from "../core/base/env-file.ts";
import { InterruptedError, UsageError } from "../core/base/errors.ts";
import type { Store, StoreOptions } from "../core/store/db/database.ts";
import type { Actor } from "../core/store/work/operator-actions.ts";
import { createOutput, type Output, type OutputOptions } from "./output.ts";
import { type CommandEnvironment, commandEnvironment, withEndedDemo } from "./running-demo.ts";

export interface Session {
  readonly config: Config;
  readonly output: Output;
  /** Aborted by Ctrl-C, SIGTERM, SIGHUP, and the end of the npm that started the process. */
  readonly signal: AbortSignal;
  store(): Promise<Store>;
  /** Connects to `DATABASE_MIGRATE_URL`, if it is set. */
  storeToMigrate(): Promise<Store>;
  /** Error: `schema_outdated`. */
  migratedStore(): Promise<Store>;
  onClose(close: () => Promise<void>): void;
}

/**
 * Reads the configuration, runs the action, closes its connections and sets the exit code. Without a configuration the
 * settings of a running demo apply, unless the command is `alone`.
 */
export function inSession<O extends object>(
  action: (session: Session, options: O, ...rest: string[]) => Promise<number | undefined>,
  { alone = false }: { alone?: boolean } = {},
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const command = given.at(-1) as Command;
    const options = command.optsWithGlobals() as O & OutputOptions;
    const closers: (() => Promise<void>)[] = [];
    const output = createOutput(options);
    const abort = new AbortController();
    const stop = () => {
      abort.abort(
        new InterruptedError({
          code: "interrupted",
          message: "Interrupted.",
          next: "Run the command again to continue. Loaded days are kept.",
        }),
      );
      endInTime(output);
    };
    for (const signal of STOPS) process.once(signal, stop);
    const unwatch = watchNpm(stop);
    let demo: CommandEnvironment["demo"];
    try {
      const found: CommandEnvironment = alone
        ? { environment: withEnvFile(process.env), demo: undefined }
        : await commandEnvironment(process.env);
      demo = found.demo;
      if (found.note !== undefined) output.note(found.note);
      const session = createSession({
        config: readConfig(found.environment),
        output,
        signal: abort.signal,
        onClose: (close) => void closers.push(close),
      });
      process.exitCode = (await action(session, options, ...command.args)) ?? 0;
    } catch (error) {
      throw demo === "ended" ? withEndedDemo(error) : error;
    } finally {
      unwatch();
      for (const close of closers.reverse()) await close();
      for (const signal of STOPS) process.off(signal, stop);
    }
  };
}

/** Error: `source_unknown`. */
export function inSessionOfSource<O extends object>(
  action: (session: Session, options: O, ...rest: string[]) => Promise<number | undefined>,
): (...given: unknown[]) => Promise<void> {
  return inSession((session: Session, options: O & { readonly source?: string }, ...rest) => {
    const { config } = session;
    const { source: slug } = options;
    if (slug === undefined) return action(session, options, ...rest);
    const sources = config.sources.filter((one) => one.slug === slug);
    if (sources.length > 0) return action({ ...session, config: { ...config, sources } }, options, ...rest);
    throw new UsageError({
      code: "source_unknown",
      message: `Source ${slug} is not configured.`,
      next: `Choose a configured source: ${config.sources.map((one) => one.slug).join(", ") || "there is none"}.`,
    });
  });
}

/** A second signal of the same kind ends the process at once. */
const STOPS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** After a signal the process exits within this time, even if something hangs. */
const END_WITHIN_MS = 25_000;

export function endInTime(output: Output): void {
  setTimeout(() => {
    output.note(`It did not end within ${END_WITHIN_MS / 1000} s, so it ends without closing the rest.`);
    process.exit(1);
  }, END_WITHIN_MS).unref();
}

/** npm passes on SIGINT and SIGTERM only. If npm ended in another way, the program would run on. */
function watchNpm(stop: () => void): () => void {
  if (!/^exec src\/cli\.js\b/.test(process.env.npm_lifecycle_script ?? "")) return () => {};
  const npm = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === npm) return;
    clearInterval(timer);
    stop();
  }, 1_000).unref();
  return () => clearInterval(timer);
}

export function createSession(given: Pick<Session, "config" | "output" | "signal" | "onClose">): Session {
  const { config, onClose } = given;
  let opened: Promise<Store> | undefined;
  const store = () => {
    opened ??= openChecked(
      { url: requireDatabaseUrl(config), maxConnections: config.maxConnections },
      onClose,
    );
    return opened;
  };
  return {
    ...given,
    store,
    storeToMigrate: () => {
      const { databaseMigrateUrl: url, maxConnections } = config;
      return url === undefined
        ? store()
        : openChecked({ url, variable: "DATABASE_MIGRATE_URL", maxConnections }, onClose);
    },
    migratedStore: async () => {
      const ready = await store();
      await requireSchema(ready);
      return ready;
    },
  };
}

async function openChecked(options: StoreOptions, onClose: Session["onClose"]): Promise<Store> {
  // Loaded here, so that a command without a database starts in half the time.
  const { checkReachable, openStore } = await import("../core/store/db/database.ts");
  const store = openStore(options);
  onClose(() => store.close());
  await checkReachable(store);
  return store;
}

/** Refuses a schema that is too old, in which a query would fail on a missing column, and a reader's login. */
export async function requireSchema(store: Store): Promise<void> {
  const { pendingMigrations } = await import("../core/store/db/schema-version.ts");
  const { refuseReader } = await import("../core/store/activity/reader-login.ts");
  // A reader cannot see applied migrations, so all would seem pending.
  await refuseReader(store.db);
  const pending = await pendingMigrations(store.db);
  if (pending.length === 0) return;
  throw new UsageError({
    code: "schema_outdated",
    message: `The database lacks ${pending.length} migration${pending.length > 1 ? "s" : ""}: ${pending.join(", ")}.`,
    next: "Run `usage-etl migrate`, then this command again.",
  });
}

/** `name` is null for a user without a name, as in some containers. */
export function commandActor(): Actor {
  return { name: userName(), role: "operator", via: "command" };
}

function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    // The system has no name for the user's id.
    return null;
  }
}

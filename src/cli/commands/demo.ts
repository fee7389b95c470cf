import type { Command } from "commander";
import { type Config, readRedis, type SourceConfig } from "../../config/config.ts";
import { withEnvFile } from "../../config/env-file.ts";
import { Secret } from "../../config/secret.ts";
import { UnreachableError } from "../../errors.ts";
import { createLoader } from "../../local/demo/loader.ts";
import { BILLED, checkAll, describePlanted, loadBill, plant, startBilled } from "../../local/demo/plant.ts";
import { firstSync, runOn, SYNC_EVERY } from "../../local/demo/sync.ts";
import { keepStory, PLANTED, readStory, startTroubled } from "../../local/demo/troubles.ts";
import { resolvePostgres, resolveRedis } from "../../local/servers/resolve.ts";
import { type Standin, startStandin } from "../../local/standin/server.ts";
import { createLogger, type Logger } from "../../log.ts";
import { openSource } from "../../pipeline/source/open-source.ts";
import { type RedisServer, redisServerOf } from "../../redis-server.ts";
import { servePages } from "../../service/pages.ts";
import { serve } from "../../service/serve.ts";
import { migrate } from "../../store/db/migrate.ts";
import { EXIT } from "../session/exit.ts";
import { announceDemo, DEMO_DIR } from "../session/running-demo.ts";
import { createSession, inSession, type Session } from "../session/session.ts";
import { sourceDepsOf } from "../session/sources.ts";

/** The stand-in serves only this demo. */
const RATE_LIMIT = 1000;

interface DemoOptions {
  readonly once?: boolean;
  readonly inline?: boolean;
  readonly dataDir: string;
}

export function define(command: Command): void {
  command
    .option("--once", "stop after the first sync instead of on Ctrl-C")
    .option("--inline", "run in this process, without Redis")
    .option("--data-dir <folder>", "folder of its database, kept between runs", DEMO_DIR)
    .action(inSession(demo, { alone: true }));
}

async function demo(given: Session, { once = false, inline = false, dataDir }: DemoOptions): Promise<number> {
  const { output, signal, onClose } = given;
  const postgres = await resolvePostgres({ dataDir, say: output.note });
  onClose(() => postgres.close());
  const found = inline ? undefined : await findRedis(given);
  const redis = found?.redis;
  const standin = await startStandin();
  onClose(() => standin.close());
  const story = readStory(dataDir, standin.now());
  const troubled = once ? undefined : await startTroubled(story);
  if (troubled !== undefined) onClose(() => troubled.standin.close());
  const billed = once ? undefined : await startBilled(story);
  if (billed !== undefined) onClose(() => billed.close());

  const sources = [
    healthySource(standin),
    ...(troubled === undefined ? [] : [plantedSource(troubled, story)]),
    ...(billed === undefined ? [] : [billedSource(billed, story)]),
  ];
  const config = demoConfig(given.config, { databaseUrl: postgres.url, redis, sources });
  const session = createSession({ ...given, config });
  const log = quietAbout([PLANTED, BILLED], createLogger(config.logLevel, output.logTo));
  const store = await session.store();
  await migrate(store);
  // No scheduler yet: a scheduled sync would fetch again what the first sync counts.
  const service =
    redis === undefined
      ? await servePages({ config, store, log })
      : await serve({ config, store, redis, role: "worker", servesPages: true, log });
  onClose(() => service.close());
  const pages = `${service.url}/`;
  const announced = await announceDemo(dataDir, {
    databaseUrl: postgres.url,
    redisUrl: found?.url,
    sources,
    pages,
    syncEvery: SYNC_EVERY.iso,
    environment: withEnvFile(process.env),
  });
  onClose(async () => announced?.withdraw());
  output.note(`Pages: ${pages}`);
  output.note(
    `Postgres: ${postgres.origin}. Queue: ${redis === undefined ? "none (inline)" : "BullMQ"}. Platform: the stand-in on ${standin.url}.`,
  );
  output.note(`Health and metrics: ${service.url}/readyz, ${service.url}/metrics`);

  const open = (source: SourceConfig) => {
    const deps = sourceDepsOf(source, { ...given, config, store });
    return openSource({ ...deps, log: log.child({ source: source.slug }) });
  };
  const loader = createLoader(session, redis);
  const [healthy, planted, whole] = sources as [SourceConfig, SourceConfig?, SourceConfig?];
  const opened = [await open(healthy)] as [Awaited<ReturnType<typeof open>>];
  const exit = await firstSync(opened[0], output, loader);
  if (exit !== EXIT.done || troubled === undefined || planted === undefined || whole === undefined)
    return exit;
  await checkAll(opened[0]);
  const trouble = await open(planted);
  await plant(trouble, { story, troubled, loader });
  keepStory(dataDir, { ...story, isTold: true });
  const bill = await open(whole);
  const billText = await loadBill(bill, loader);
  opened.push(trouble, bill);
  output.note(`\n${describePlanted(story, troubled, pages)}`);
  output.note(`\n${billText}`);
  output.note(
    `\nPages: ${pages}\nThe demo syncs every ${SYNC_EVERY.ms / 1000} s until Ctrl-C. Meanwhile other commands find it, such as \`usage-etl status\`.`,
  );
  if (announced !== undefined) output.note(`Elsewhere set USAGE_ENV_FILE=${announced.file}`);
  output.note(
    `Query the views with\n  psql '${postgres.url}' -c 'SELECT * FROM reporting.fct_usage_workspace_daily ORDER BY 2 DESC LIMIT 10'`,
  );
  if (redis !== undefined) {
    const scheduler = await serve({ config, store, redis, role: "scheduler", servesPages: false, log });
    onClose(() => scheduler.close());
  }
  return runOn(opened, { output, signal, loader: redis === undefined ? loader : undefined });
}

/** What is planted, and what a server is made to lack, must not look like a defect: of these sources only errors are logged. */
function quietAbout(slugs: readonly string[], log: Logger): Logger {
  const { child } = log;
  const level = log.isLevelEnabled("error") ? "error" : log.level;
  return Object.assign(log, {
    child: (bindings: { source?: string }) =>
      slugs.includes(bindings.source ?? "")
        ? child.call(log, bindings, { level })
        : child.call(log, bindings),
  });
}

/** An empty Redis is enough: Postgres holds the state. Without Redis the demo runs inline and says so. */
async function findRedis({ output, onClose }: Session) {
  try {
    const redis = await resolveRedis({ say: output.note });
    onClose(() => redis.close());
    return { url: redis.url, redis: readRedis(process.env) ?? redisServerOf({ url: redis.url }) };
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    output.note(`${error.message} The demo runs inline.`);
    return undefined;
  }
}

function healthySource(standin: Standin): SourceConfig {
  return {
    ...sourceOf(standin, "demo"),
    dataStart: "2026-01-05",
    deploymentUrl: standin.url,
    // The stand-in names its project like this.
    probeProject: "agent-server",
  };
}

/** Two workspaces are enough to show one that is refused. */
function plantedSource(
  { standin, workspaces }: Awaited<ReturnType<typeof startTroubled>>,
  { closed }: { closed: string },
): SourceConfig {
  return { ...sourceOf(standin, PLANTED), dataStart: closed, workspaceIds: workspaces.map(({ id }) => id) };
}

function billedSource(standin: Standin, { closed }: { closed: string }): SourceConfig {
  return { ...sourceOf(standin, BILLED), dataStart: closed };
}

function sourceOf(standin: Standin, slug: string) {
  return {
    slug,
    baseUrl: standin.url,
    apiKey: new Secret(standin.apiKey),
    controlPlaneUrl: standin.url,
    organizationId: undefined,
    workspaceIds: [],
    rateLimit: RATE_LIMIT,
  };
}

function demoConfig(
  config: Config,
  of: { databaseUrl: string; redis: RedisServer | undefined; sources: readonly SourceConfig[] },
): Config {
  return {
    ...config,
    databaseUrl: new Secret(of.databaseUrl),
    redis: of.redis,
    sources: of.sources,
    syncEveryMs: SYNC_EVERY.ms,
    // Any free port: the service may run on the same machine.
    httpPort: 0,
  };
}

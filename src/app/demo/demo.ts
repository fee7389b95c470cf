import type { Command } from "commander";
import { type Config, readRedis, type SourceConfig } from "../../core/base/config.ts";
import { withEnvFile } from "../../core/base/env-file.ts";
import { UnreachableError } from "../../core/base/errors.ts";
import { createLogger } from "../../core/base/log.ts";
import { type RedisServer, redisServerOf } from "../../core/base/redis-server.ts";
import { Secret } from "../../core/base/secret.ts";
import { openSource } from "../../core/pipeline/source/open-source.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import { migrate } from "../../core/store/migrate.ts";
import { conditionSettingsOf } from "../../features/alerts/conditions.ts";
import { sendAlerts } from "../../features/alerts/send-alerts.ts";
import { readNames, readResourceTags } from "../../features/costs/read-terms.ts";
import { resolvePostgres } from "../../features/servers/postgres.ts";
import { resolveRedis } from "../../features/servers/redis.ts";
import { freePort } from "../../features/servers/start-server.ts";
import { billEarlier, DEPLOYMENT_PROJECT } from "../../features/standin/engine/meter.ts";
import { type Standin, startStandin } from "../../features/standin/server.ts";
import { EXIT } from "../../terminal/exit.ts";
import { wholeNumber } from "../../terminal/options.ts";
import { announceDemo, DEMO_DIR } from "../../terminal/running-demo.ts";
import { createSession, inSession, type Session } from "../../terminal/session.ts";
import { sourceDepsOf } from "../../terminal/sources.ts";
import { servePages } from "../service/pages.ts";
import { serve } from "../service/serve.ts";
import { hourlyTracesOf } from "./load-totals.ts";
import { createLoader } from "./loader.ts";
import { checkAll, describePlanted, giveOwners, loadBill, plant } from "./plant.ts";
import { openDemoReceivers } from "./receivers.ts";
import {
  BILLED,
  keepStory,
  PLANTED,
  readStory,
  type Story,
  startBilled,
  startTroubled,
  upgradeLate,
} from "./story.ts";
import { firstSync, runOn, SYNC_EVERY } from "./sync.ts";

/** The stand-in limits no requests, so a lower limit would only make the demo wait. */
const RATE_LIMIT = 2_000;

interface DemoOptions {
  readonly once?: boolean;
  readonly inline?: boolean;
  readonly dataDir: string;
  readonly port: number;
}

export const examples = [
  ["demo", "everything, until Ctrl-C"],
  ["demo --once --inline", "one sync without Redis, then stop"],
] as const;

export function define(command: Command): void {
  command
    .option("--once", "stop after the first sync instead of on Ctrl-C")
    .option("--inline", "run in this process, without Redis")
    .option("--data-dir <folder>", "folder of its settings file", DEMO_DIR)
    .option(
      "--port <n>",
      "of the pages; its platforms take the next three. 0: any",
      wholeNumber(65_532),
      9460,
    )
    .action(inSession(demo, { alone: true }));
}

async function demo(given: Session, options: DemoOptions): Promise<number> {
  const stage = await startAll(given, options);
  const { session, healthy, beside, redis, pages } = stage;
  const { output } = session;
  const loader = createLoader(session, redis);
  const first = await openFrom(stage, healthy);
  const exit = await firstSync(first, output, loader);
  if (exit !== EXIT.done || beside === undefined) return exit;
  await checkAll(first);
  await readResourceTags(first);
  const { story, troubled } = beside;
  const planted = await openFrom(stage, beside.planted);
  // Prices name this source, so it must be known.
  const billed = await openFrom(stage, beside.billed);
  await plant(planted, { story, troubled, loader });
  keepStory(options.dataDir, story);
  const bill = await loadBill(billed, { story, loader, upgrade: beside.upgrade });
  await giveOwners(billed);
  const texts = [
    describePlanted(story, troubled, pages),
    bill,
    "Rules over tags and names say which team pays for what. `usage-etl owners suggest` lists what has no owner.",
    "Routes say who is notified. `usage-etl alerts` lists them. What the demo's receivers got:",
  ];
  for (const text of texts) output.note(`\n${text}`);
  const opened = [first, planted, billed] as const;
  for (const source of opened) await readNames(source);
  await notifyReceivers(opened, session);
  output.note(threeToTry(pages, stage.postgresUrl));
  if (stage.envFile !== undefined) output.note(`Elsewhere set USAGE_ENV_FILE=${stage.envFile}`);
  if (redis === undefined) return runOn(opened, session, loader);
  await startScheduler(stage, redis);
  return runOn(opened, session);
}

type Stage = Awaited<ReturnType<typeof startAll>>;

async function startAll(given: Session, { once = false, inline = false, dataDir, port }: DemoOptions) {
  const { output, onClose } = given;
  const postgres = await resolvePostgres({ say: output.note, mayInstall: requesting(given) });
  onClose(() => postgres.close());
  const found = inline ? undefined : await findRedis(given);
  const redis = found?.redis;
  const [pagesPort, ...ports] = await portsFrom(port, output.note);
  const standin = await startStandin({ port: ports[0], tags: "on" });
  onClose(() => standin.close());
  const beside = once ? undefined : await startAlongside(given, readStory(dataDir, standin.now()), ports);
  const healthy = { ...sourceOf(standin, "demo"), dataStart: "2026-01-05", deploymentUrl: standin.url };
  const config = demoConfig(given.config, {
    databaseUrl: postgres.url,
    redis,
    sources: beside === undefined ? [healthy] : [healthy, beside.planted, beside.billed],
    httpPort: pagesPort,
    routeSecrets: beside?.receivers.secrets ?? new Map(),
  });
  const session = createSession({ ...given, config });
  const store = await session.store();
  await migrate(store);
  // The stand-in also bills runs of earlier demos. Otherwise it would seem to have lost them.
  const earlier = { source: healthy.slug, project: DEPLOYMENT_PROJECT };
  for (const { at, traces } of await hourlyTracesOf(store.db, earlier))
    billEarlier(standin, { at, runs: traces });
  // Warnings about planted trouble would look like defects.
  const log = createLogger("error", output.logTo);
  // No schedules: a scheduled sync would disturb the counts of the first sync.
  const service =
    redis === undefined
      ? await servePages({ config, store, log })
      : await serve({ config, store, redis, role: "worker", servesPages: true, log });
  onClose(() => service.close());
  const pages = `${service.url}/`;
  const announced = await announceDemo(dataDir, {
    databaseUrl: postgres.url,
    redisUrl: found?.url,
    sources: config.sources,
    pages,
    syncEvery: SYNC_EVERY.iso,
    routes: beside?.receivers.settings ?? {},
    environment: withEnvFile(process.env),
  });
  onClose(async () => announced?.invalidate());
  const queue = redis === undefined ? "none (inline)" : "BullMQ";
  output.note(`Pages: ${pages}`);
  output.note(`Postgres: ${postgres.origin}. Queue: ${queue}. Platform: the stand-in on ${standin.url}.`);
  output.note(`Health and metrics: ${service.url}/readyz, ${service.url}/metrics`);
  return {
    session,
    store,
    log,
    redis,
    healthy,
    beside,
    pages,
    postgresUrl: postgres.url,
    envFile: announced?.file,
  };
}

async function startAlongside({ output, onClose }: Session, story: Story, ports: readonly number[]) {
  const troubled = await startTroubled(story, ports[1]);
  onClose(() => troubled.standin.close());
  const standin = await startBilled(story, ports[2]);
  onClose(() => standin.close());
  const receivers = await openDemoReceivers(output.note);
  onClose(() => receivers.close());
  const workspaceIds = troubled.workspaces.map(({ id }) => id);
  const planted = { ...sourceOf(troubled.standin, PLANTED), dataStart: story.closed, workspaceIds };
  const billed = { ...sourceOf(standin, BILLED), dataStart: story.closed };
  return { story, troubled, planted, billed, upgrade: () => upgradeLate(standin, story), receivers };
}

function openFrom({ session, store, log }: Stage, source: SourceConfig): Promise<OpenSource> {
  const deps = sourceDepsOf(source, { ...session, store });
  return openSource({ ...deps, log: log.child({ source: source.slug }) });
}

async function notifyReceivers(opened: readonly OpenSource[], { config, signal }: Session): Promise<void> {
  const settings = {
    secrets: config.routeSecrets,
    webUrl: config.webUrl,
    signal,
    ...conditionSettingsOf(config),
  };
  for (const source of opened) await sendAlerts(source, { ...settings, slug: source.config.slug });
}

async function startScheduler({ session, store, log }: Stage, redis: RedisServer): Promise<void> {
  const config = { ...session.config, httpPort: 0 };
  const scheduler = await serve({ config, store, redis, role: "scheduler", servesPages: false, log });
  session.onClose(() => scheduler.close());
}

function threeToTry(pages: string, database: string): string {
  const question =
    "SELECT workspace_name, sum(traces) FROM reporting.fct_usage_workspace_daily WHERE source_id = 'demo' GROUP BY workspace_id, workspace_name ORDER BY 2 DESC";
  return [
    `\nThe demo syncs every ${SYNC_EVERY.ms / 1000} s until Ctrl-C. Three things to try meanwhile:`,
    `1. Look: open ${pages}`,
    "2. Ask how far the figures can be trusted, in another terminal: `usage-etl status`",
    `3. Query: psql '${database}' -c "${question}"`,
  ].join("\n");
}

type Ports = readonly [number, number, number, number];

/** Four ports in a row, the same at each start. If one is taken: any four free ports. */
async function portsFrom(first: number, say: (line: string) => void): Promise<Ports> {
  const ports: Ports = [first, first + 1, first + 2, first + 3];
  if (first === 0) return [0, 0, 0, 0];
  const free = await Promise.allSettled(ports.map(freePort));
  if (free.every(({ status }) => status === "fulfilled")) return ports;
  say(`A port from ${first} to ${first + 3} is taken, so the demo takes others. --port chooses them.`);
  return [0, 0, 0, 0];
}

/** An empty Redis is enough, because Postgres holds the state. Without Redis the demo runs inline. */
async function findRedis(session: Session) {
  const { output, onClose } = session;
  try {
    const redis = await resolveRedis({ say: output.note, mayInstall: requesting(session) });
    onClose(() => redis.close());
    return { url: redis.url, redis: readRedis(process.env) ?? redisServerOf({ url: redis.url }) };
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    output.note(`${error.message} The demo runs inline.`);
    return undefined;
  }
}

/** Asks before an installation if there is a terminal. Otherwise nobody is asked. */
function requesting({ signal }: Session): (what: string) => Promise<boolean> {
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) return async () => true;
  return async (what) => {
    const { promptsFor } = await import("../../terminal/prompts.ts");
    const response = await promptsFor(signal).text(
      `Install ${what}? Enter installs it, "no" does not.`,
      "yes",
    );
    return !/^n/i.test(response);
  };
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
  of: { databaseUrl: string; httpPort: number } & Pick<Config, "redis" | "sources" | "routeSecrets">,
): Config {
  return {
    ...config,
    ...of,
    databaseUrl: new Secret(of.databaseUrl),
    syncEveryMs: SYNC_EVERY.ms,
    webUrl: of.httpPort === 0 ? undefined : `http://127.0.0.1:${of.httpPort}`,
  };
}

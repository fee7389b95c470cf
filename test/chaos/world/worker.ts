import { onTestFinished } from "vitest";
import { type Running, start } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { type CommitHook, commitsOf } from "./commits.ts";
import { openWire, type Wire } from "./wire.ts";
import type { World } from "./world.ts";

/** A process of the service, with wires of its own to its servers. */
export interface Worker {
  readonly running: Running;
  readonly postgres: Wire;
  readonly redis: Wire;
  readonly platform: Wire;
  /** What becomes of the end of its loads. */
  onCommit: CommitHook;
  /** All it wrote that is a log line. */
  log(): LogLine[];
  /** Whether it was ended on purpose. */
  isGone: boolean;
}

interface LogLine {
  readonly time?: string;
  readonly level?: number;
  readonly msg?: string;
  readonly name?: string;
  readonly code?: string;
  readonly reason?: string;
  readonly [field: string]: unknown;
}

export interface WorkerOptions {
  /** Folder of another release. */
  readonly release?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Milliseconds that an answer of the platform takes: as long as a short one does over the internet. */
const PLATFORM_DELAY_MS = 40;

/** Exit code of a process whose server is out of reach (docs/cli.md). */
const UNREACHABLE = 6;
/** Servers may be away meanwhile, and the machine busy. */
const SERVES_WITHIN_MS = 300_000;

export async function startWorker(world: World, { release, environment }: WorkerOptions): Promise<Worker> {
  const [postgres, redis, platform] = await Promise.all([
    openWire(world.postgres.port, () => commitsOf((moment) => worker.onCommit(moment))),
    openWire(world.redis.port),
    openWire(world.platform.port),
  ]);
  platform.delayMs = PLATFORM_DELAY_MS;
  const begin = () =>
    start(
      ["serve"],
      {
        ...world.environment,
        DATABASE_URL: through(world.environment.DATABASE_URL, postgres),
        REDIS_URL: through(world.environment.REDIS_URL, redis),
        USAGE_BASE_URL: through(world.environment.USAGE_BASE_URL, platform),
        ...environment,
      },
      release === undefined ? ownRelease() : { release },
    );
  onTestFinished(async () => {
    await Promise.all([postgres.close(), redis.close(), platform.close()]);
  });
  let running = begin();
  const worker: Worker = {
    ...{ postgres, redis, platform },
    get running() {
      return running;
    },
    isGone: false,
    onCommit: () => "pass",
    log: () => linesOf(`${running.said.stdout}\n${running.said.stderr}`),
  };
  await poll(
    () => {
      // A server that is away ends it; whoever supervises it starts it again.
      if (running.process.exitCode === UNREACHABLE) running = begin();
      return running.said.stderr.includes("serving as");
    },
    { deadlineMs: SERVES_WITHIN_MS },
  );
  return worker;
}

/** Where the product lies: a copy with a planted bug (planted.ts), if that is what runs. */
export function ownRelease(): { readonly release?: string } {
  const { CHAOS_RELEASE: release } = process.env;
  return release === undefined ? {} : { release };
}

export function through(url: string | undefined, wire: Wire): string {
  const changed = new URL(url ?? "");
  changed.port = `${wire.port}`;
  return changed.href.replace(/\/$/, "");
}

function linesOf(text: string): LogLine[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line));
}

/** The address of its health and metrics. */
export function urlOf({ running }: Worker): string {
  const [, url = ""] = /health and metrics on (\S+);/.exec(running.said.stderr) ?? [];
  return url;
}

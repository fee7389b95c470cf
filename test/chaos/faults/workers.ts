import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { poll } from "../../support/poll.ts";
import { all, type FaultOf, kill, repeatedly, worker } from "../world/fault.ts";
import { fill, smallDisk } from "../world/servers.ts";
import type { Worker, World } from "../world/world.ts";

/** How long the service may take to exit after SIGTERM, milliseconds. */
const EXIT_WITHIN_MS = 25_000;

const BLOCKING = {
  NODE_OPTIONS: `--import=${fileURLToPath(new URL("../world/block-on-signal.ts", import.meta.url))}`,
};

async function killAt(world: World, moment: "before" | "after"): Promise<() => Promise<void>> {
  const victim = worker(world);
  await new Promise<void>((struck) => {
    victim.onCommit = (now) => {
      if (now !== moment) return "pass";
      kill(victim);
      struck();
      return "cut";
    };
  });
  return async () => void (await world.addWorker());
}

/** Kills a worker with `kill -9` before the so many-th of what it sends. */
function killAtRandom(sent: "onStatement" | "onRedis", most: number) {
  return async (world: World): Promise<() => Promise<void>> => {
    const victim = worker(world);
    let left = 1 + world.dice.below(most);
    await new Promise<void>((struck) => {
      victim[sent] = () => {
        if (--left !== 0) return;
        kill(victim);
        struck();
      };
    });
    return async () => void (await world.addWorker());
  };
}

function killedAtRandom(sent: "onStatement" | "onRedis", most: number, times: number) {
  return async (world: World): Promise<() => Promise<void>> => {
    for (let i = 1; i < times; i++) {
      const replace = await killAtRandom(sent, most)(world);
      await replace();
    }
    return killAtRandom(sent, most)(world);
  };
}

const KILLED_FOR_MS = 600_000;

async function mostClaims(world: World): Promise<number> {
  const [row] = await world.sql<{ most: number | null }>(
    "SELECT max(open_claims)::integer AS most FROM usage.fetch_task",
  );
  return row?.most ?? 0;
}

async function endInTime(victim: Worker, withinMs = EXIT_WITHIN_MS): Promise<void> {
  const since = performance.now();
  kill(victim, "SIGTERM");
  const { code } = await victim.running.ended;
  const ms = Math.round(performance.now() - since);
  if (code !== 0 || ms > withinMs) throw new Error(`exit code ${code} after ${ms} ms`);
}

export const WORKER_FAULTS: readonly FaultOf[] = [
  {
    name: "worker: kill -9 within a fetch",
    how: "5 s, within 60 s, short, random",
    begin: async (world) => {
      const victim = worker(world);
      await new Promise<void>((struck) => {
        const wanted = world.platform.requests + 4;
        world.platform.onUsageRequest = () => world.platform.requests >= wanted && struck();
      });
      kill(victim);
      return async () => void (await world.addWorker());
    },
  },
  {
    name: "worker: kill -9 between COPY and COMMIT",
    how: "5 s, within 60 s, short, random",
    begin: (world) => killAt(world, "before"),
  },
  {
    name: "worker: kill -9 after COMMIT, before the acknowledgement",
    how: "5 s, within 60 s, random",
    begin: (world) => killAt(world, "after"),
  },
  {
    name: "worker: kill -9 before any statement",
    how: "1 s, within 60 s, random",
    begin: killAtRandom("onStatement", 300),
  },
  {
    name: "worker: kill -9 before any command to Redis",
    how: "1 s, within 60 s, random",
    begin: killAtRandom("onRedis", 300),
  },
  {
    name: "worker: kill -9 before any statement, ten times",
    how: "1 s, within 90 s",
    begin: killedAtRandom("onStatement", 300, 10),
  },
  {
    name: "worker: SIGTERM beside a silent Postgres",
    how: "1 s, within 90 s",
    begin: async (world) => {
      const victim = worker(world);
      victim.postgres.silence({ newOnes: true });
      await endInTime(victim, 10_000);
      return async () => void (await world.addWorker());
    },
  },
  {
    name: "worker: the disk that takes its log is full",
    how: "30 s, within 60 s",
    begin: async (world) => {
      const folder = smallDisk("1m");
      await world.addWorker({ output: join(folder, "log") });
      const filler = join(folder, "filler");
      fill(filler);
      return async () => rmSync(filler);
    },
  },
  {
    name: "worker: killed five times within the same fetch task",
    how: "1 s, within 90 s",
    options: { workers: 1 },
    begin: async (world) => {
      const since = performance.now();
      for (let kills = 0; (await mostClaims(world)) < 5; kills++) {
        if (performance.now() - since > KILLED_FOR_MS)
          throw new Error(`${kills} kills did not hit one fetch task five times`);
        const replace = await killAt(world, "before");
        await replace();
      }
      return async () => {};
    },
  },
  {
    name: "worker: frozen for 60 s",
    how: "60 s, within 60 s, random",
    begin: async (world) => {
      const victim = worker(world);
      victim.running.process.kill("SIGSTOP");
      return async () => void victim.running.process.kill("SIGCONT");
    },
  },
  {
    name: "worker: event loop blocked for 45 s",
    how: "50 s, within 60 s",
    options: { worker: { environment: BLOCKING } },
    begin: async (world) => {
      worker(world).running.process.kill("SIGUSR2");
      return async () => {};
    },
  },
  {
    name: "worker: SIGTERM under load, answers take 12 s",
    how: "1 s, within 90 s, short",
    begin: async (world) => {
      for (const one of all(world)) one.platform.delayMs = 12_000;
      const before = world.platform.requests;
      await poll(() => world.platform.requests > before + 4, { deadlineMs: 60_000 });
      await endInTime(worker(world));
      const other = await world.addWorker();
      return async () => {
        for (const one of [...all(world), other]) one.platform.delayMs = 40;
      };
    },
  },
  {
    name: "worker: rolling restarts for ten minutes",
    how: "600 s, within 60 s",
    begin: async (world) => {
      let failure: Error | undefined;
      const stop = repeatedly(2_000, async () => {
        const oldest = worker(world);
        await world.addWorker();
        await endInTime(oldest).catch((error: Error) => {
          failure = error;
        });
      });
      return async () => {
        await stop();
        if (failure !== undefined) throw failure;
      };
    },
  },
];

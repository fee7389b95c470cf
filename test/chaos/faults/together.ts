import { setTimeout as pause } from "node:timers/promises";
import { usageEtl } from "../../support/cli.ts";
import { nextRelease } from "../../support/release.ts";
import { type FaultOf, repeatedly, worker } from "../world/fault.ts";
import { health, untilIdle } from "../world/oracle.ts";
import { clockOff, createPostgres, moveClocks } from "../world/servers.ts";
import type { World } from "../world/world.ts";

const NEXT = {
  migration: "9999_next_release",
  sql: "ALTER TABLE usage.fetch_task ADD COLUMN note text; SELECT pg_sleep(2);",
  views: "CREATE OR REPLACE VIEW reporting.next_release AS SELECT 1 AS one;",
};

/** A host whose clock is off joins the others. They must not wait for it, before it leaves and after. */
function joinsWithClockOff(seconds: number) {
  return async (world: World) => {
    const joined = await world.addWorker({ environment: clockOff(seconds) });
    joined.isGone = true;
    const stopChanging = repeatedly(300, () => world.change());
    await pause(10_000);
    await stopChanging();
    if ((await health(joined, "/readyz")) === undefined) throw new Error("it says that it is ready");
    world.change();
    await untilIdle(world, 45);
    return async () => {
      joined.running.process.kill("SIGTERM");
      await joined.running.ended;
    };
  };
}

function requestedTwice(world: World): () => Promise<void> {
  return repeatedly(3_000, () => world.createBackfill());
}

function alongsideService(world: World, lines: Parameters<World["loadByHand"]>[0]): () => Promise<void> {
  return repeatedly(100, () => world.loadByHand(lines));
}

const IN_BERLIN = [
  ["a month ends, on servers that have daylight saving time", "2026-10-31T23:59:40Z"],
  ["clocks go back by an hour", "2026-10-25T00:59:40Z"],
  ["clocks go forward by an hour", "2026-03-29T00:59:40Z"],
] as const;

function inBerlin(startsAt: number) {
  return async () => {
    moveClocks(startsAt);
    const postgres = await createPostgres({ settings: ["timezone=Europe/Berlin"] });
    await postgres.start();
    return { postgres, startsAt, environment: { TZ: "Europe/Berlin" } };
  };
}

export const TOGETHER: readonly FaultOf[] = [
  ...[3_600, -3_600].map((seconds) => ({
    name: `together: a host whose clock is 1 h ${seconds > 0 ? "ahead" : "behind"} joins`,
    how: "1 s, within 60 s",
    withoutChanges: true as const,
    begin: joinsWithClockOff(seconds),
  })),
  ...IN_BERLIN.map(([what, startsAt]) => ({
    name: `together: ${what}`,
    how: "30 s, within 60 s",
    options: inBerlin(Date.parse(startsAt)),
    begin: async (world: World) => repeatedly(500, () => world.change()),
  })),
  {
    name: "together: the same windows on two workers, overlapping backfills",
    how: "20 s, within 60 s, short, random",
    begin: async (world) => {
      await Promise.all([world.createBackfill(), world.createBackfill()]);
      const ends = [requestedTwice(world), alongsideService(world, { postgresMs: 150 })];
      return async () => void (await Promise.all(ends.map((end) => end())));
    },
  },
  {
    name: "together: older responses arrive late",
    how: "30 s, within 60 s, random",
    mustHappen: "EXISTS (SELECT FROM usage.fetch WHERE outcome = 'discarded')",
    begin: async (world) => {
      const late = worker(world);
      late.platform.delayMs = 9_000;
      const ends = [requestedTwice(world), alongsideService(world, { platformMs: 9_000 })];
      return async () => {
        await Promise.all(ends.map((end) => end()));
        late.platform.delayMs = 40;
      };
    },
  },
  {
    name: "together: two releases, and a migration between",
    how: "5 s, within 60 s",
    begin: async (world) => {
      const release = nextRelease(NEXT);
      const { code, stderr } = await usageEtl(["migrate"], world.environment, { release });
      if (code !== 0) throw new Error(`migrate: ${stderr}`);
      await world.addWorker({ release });
      return async () => {};
    },
  },
];

import { setTimeout as pause } from "node:timers/promises";
import { poll } from "../../support/poll.ts";
import { openRelay } from "../../support/relay.ts";
import { all, type FaultOf, killed, repeatedly } from "../world/fault.ts";
import { createRedis, cutAppendOnlyFile, PASSWORD } from "../world/servers.ts";
import { openKeys } from "../world/world.ts";

const AWAY = ["redis_unreachable", "worker_error", "schedules_unrestored"];

export const REDIS_FAULTS: readonly FaultOf[] = [
  {
    name: "Redis: killed, with an append-only file",
    how: "10 s, within 45 s, short, random",
    named: AWAY,
    begin: ({ redis }) => killed(redis),
  },
  {
    name: "Redis: killed, without an append-only file",
    how: "10 s, within 60 s",
    named: AWAY,
    options: { aof: false },
    begin: ({ redis }) => killed(redis),
  },
  {
    name: "Redis: killed, and the end of its append-only file is lost",
    how: "5 s, within 60 s",
    named: AWAY,
    begin: async ({ redis }) => {
      await redis.kill();
      cutAppendOnlyFile(redis, 4_000);
      return () => redis.start();
    },
  },
  {
    name: "Redis: failover to a replica that has not got the last 6 s",
    how: "1 s, within 90 s",
    begin: async (world) => {
      const [wire, replica] = await Promise.all([openRelay(world.redis.port), createRedis()]);
      await replica.start();
      const keys = openKeys(replica);
      await keys.config("SET", "masterauth", PASSWORD);
      await keys.replicaof("127.0.0.1", `${wire.port}`);
      await poll(async () => (await keys.info("replication")).includes("master_link_status:up"), {
        deadlineMs: 60_000,
      });
      wire.cut({ newOnes: true });
      await pause(6_000);
      await world.redis.kill();
      return async () => {
        await keys.replicaof("NO", "ONE");
        Object.assign(world, { redis: replica, keys });
        for (const { redis } of all(world)) {
          redis.target = replica.port;
          redis.cut();
        }
      };
    },
  },
  {
    name: "Redis: FLUSHALL",
    how: "1 s, within 60 s, short, random",
    begin: async ({ keys }) => {
      await keys.flushall();
      return async () => {};
    },
  },
  {
    name: "Redis: demoted to a replica (READONLY)",
    how: "20 s, within 60 s, random",
    begin: async ({ keys }) => {
      await keys.replicaof("127.0.0.1", "1");
      return async () => void (await keys.replicaof("NO", "ONE"));
    },
  },
  {
    name: "Redis: frozen for 40 s",
    how: "40 s, within 60 s, random",
    named: AWAY,
    begin: async ({ redis }) => {
      redis.freeze();
      return async () => redis.thaw();
    },
  },
  {
    name: "Redis: half-open connections",
    how: "1 s, within 90 s, random",
    begin: async (world) => {
      for (const { redis } of all(world)) redis.silence();
      return async () => {};
    },
  },
  {
    name: "Redis: connections reset again and again",
    how: "15 s, within 45 s, random",
    begin: async (world) =>
      repeatedly(300, () => {
        for (const { redis } of all(world)) redis.cut();
      }),
  },
  {
    name: "Redis: out of memory",
    how: "20 s, within 60 s, random",
    begin: async ({ keys }) => {
      await keys.config("SET", "maxmemory", "1");
      return async () => void (await keys.config("SET", "maxmemory", "0"));
    },
  },
];

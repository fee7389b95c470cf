import { all, type Fault, repeatedly } from "../world/fault.ts";
import { cutAppendOnlyFile } from "../world/servers.ts";

const AWAY = ["redis_unreachable", "worker_error", "schedules_unrestored"];

export const REDIS_FAULTS: readonly Fault[] = [
  {
    name: "Redis: killed, with an append-only file",
    on: "redis",
    forS: 10,
    withinS: 45,
    named: AWAY,
    isShort: true,
    isRandom: true,
    begin: async ({ redis }) => {
      await redis.kill();
      return () => redis.start();
    },
  },
  {
    name: "Redis: killed, without an append-only file",
    on: "redis",
    forS: 10,
    withinS: 60,
    named: AWAY,
    options: { aof: false },
    begin: async ({ redis }) => {
      await redis.kill();
      return () => redis.start();
    },
  },
  {
    name: "Redis: killed, and the end of its append-only file is lost",
    on: "redis",
    forS: 5,
    withinS: 60,
    named: AWAY,
    begin: async ({ redis }) => {
      await redis.kill();
      cutAppendOnlyFile(redis, 4_000);
      return () => redis.start();
    },
  },
  {
    name: "Redis: FLUSHALL",
    on: "redis",
    forS: 1,
    withinS: 60,
    isShort: true,
    isRandom: true,
    begin: async ({ keys }) => {
      await keys.flushall();
      return async () => {};
    },
  },
  {
    name: "Redis: demoted to a replica (READONLY)",
    on: "redis",
    forS: 20,
    withinS: 60,
    isRandom: true,
    begin: async ({ keys }) => {
      await keys.replicaof("127.0.0.1", "1");
      return async () => void (await keys.replicaof("NO", "ONE"));
    },
  },
  {
    name: "Redis: frozen for 40 s",
    on: "redis",
    forS: 40,
    withinS: 60,
    named: AWAY,
    isRandom: true,
    begin: async ({ redis }) => {
      redis.freeze();
      return async () => redis.thaw();
    },
  },
  {
    name: "Redis: half-open connections",
    on: "redis",
    forS: 1,
    withinS: 90,
    isRandom: true,
    begin: async (world) => {
      for (const { redis } of all(world)) redis.silence();
      return async () => {};
    },
  },
  {
    name: "Redis: connections reset again and again",
    on: "redis",
    forS: 15,
    withinS: 45,
    isRandom: true,
    begin: async (world) =>
      repeatedly(300, () => {
        for (const { redis } of all(world)) redis.cut();
      }),
  },
  {
    name: "Redis: out of memory",
    on: "redis",
    forS: 20,
    withinS: 60,
    isRandom: true,
    begin: async ({ keys }) => {
      await keys.config("SET", "maxmemory", "1");
      return async () => void (await keys.config("SET", "maxmemory", "0"));
    },
  },
];

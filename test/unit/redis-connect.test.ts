import { expect, test } from "vitest";
import { connectRedis, type RedisConnection } from "../../src/redis-connect.ts";
import { redisServerOf } from "../../src/redis-server.ts";

const told = (connection: RedisConnection, status: "reconnecting" | "end") =>
  new Promise<void>((resolve) => void connection.once(status, () => resolve()));

test.each([
  ["one server", { url: "redis://127.0.0.1:1" }],
  ["a cluster", { url: "redis://127.0.0.1:1", isCluster: true }],
])(
  "a connection to %s that waits to connect again can be ended, and so can its duplicate",
  async (_kind, given) => {
    const first = connectRedis(redisServerOf(given), {
      lazyConnect: true,
      maxRetriesPerRequest: null,
      retryStrategy: () => 60_000,
    });
    const second = (first.duplicate as () => RedisConnection)();
    for (const connection of [first, second]) {
      connection.on("error", () => {});
      const waits = told(connection, "reconnecting");
      connection.connect().catch(() => {});
      await waits;
      const asked = expect(connection.get("key")).rejects.toThrow();
      const ended = told(connection, "end");
      connection.disconnect();
      await Promise.all([ended, asked]);
    }
  },
);

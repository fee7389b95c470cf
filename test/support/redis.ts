import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { inject } from "vitest";
import { serviceUrl } from "./services.ts";

/** One test's part of the run's Redis: all its keys begin with `prefix` (hash-tagged, as BullMQ requires). */
export interface TestRedis {
  readonly url: string;
  readonly prefix: string;
  /** Removes the keys under `prefix`, and no others. */
  drop(): Promise<void>;
}

export async function createTestRedis(): Promise<TestRedis> {
  const url = await serviceUrl("redis");
  const prefix = `{${inject("runPrefix")}${randomBytes(6).toString("hex")}}`;
  return {
    url,
    prefix,
    drop: async () => {
      const client = new Redis(url, { retryStrategy: null });
      try {
        for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1_000 })) {
          if (keys.length > 0) await client.unlink(...(keys as string[]));
        }
      } finally {
        await client.quit();
      }
    },
  };
}

import type { Redis } from "ioredis";
import type { Clock } from "../src/clock.ts";
import type { Share } from "../src/pipeline/source/rate-shares.ts";
import { PREFIX } from "./queues.ts";

/** Milliseconds until there is room for one more, 0 where there was. `KEYS` counter, hold; `ARGV` most, duration. */
const ADMIT = `
  local held = redis.call('PTTL', KEYS[2])
  if held > 0 then return held end
  local taken = redis.call('INCR', KEYS[1])
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    left = tonumber(ARGV[2])
  end
  if taken <= tonumber(ARGV[1]) then return 0 end
  -- In the last millisecond of its life a key has 0 left, which is not room.
  return math.max(left, 1)`;

/** Never sooner than it already is. */
const HOLD = `
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end`;

/** While Redis does not answer, nobody knows what the other hosts ask. */
const REDIS_AWAY_MS = 1_000;

export interface Budget {
  /** Resolves when there is room for one request; rejects with the signal's reason. */
  admit(): Promise<void>;
  /** Lets nobody through for so many milliseconds, on any host. */
  holdBack(ms: number): Promise<void>;
}

export function createBudget(
  connection: Redis,
  given: { slug: string; share: Share; clock: Clock; signal: AbortSignal },
): Budget {
  const { slug, share, clock, signal } = given;
  const [counter, hold] = [`${PREFIX}:budget-${slug}`, `${PREFIX}:budget-${slug}:hold`];
  return {
    admit: async () => {
      for (;;) {
        const ms = await connection
          .eval(ADMIT, 2, counter, hold, share.max, share.duration)
          .then(Number, () => REDIS_AWAY_MS);
        if (ms <= 0) return;
        await clock.wait(ms, signal);
      }
    },
    holdBack: async (ms) => {
      await connection.eval(HOLD, 1, hold, Math.max(1, Math.ceil(ms)));
    },
  };
}

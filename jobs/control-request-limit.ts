import type { Clock } from "../src/core/base/clock.ts";
import type { RedisConnection } from "../src/core/base/redis-connect.ts";
import type { Share } from "../src/core/pipeline/source/limit-shares.ts";
import { PREFIX } from "./queues.ts";

/** Returns 0 if a request may be sent, else milliseconds to wait. `KEYS`: counter, hold. `ARGV`: max, duration. */
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
  -- A key in its last millisecond reports 0, which would mean "send".
  return math.max(left, 1)`;

const HOLD = `
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end`;

/** Pause before Redis is tried again. No request is sent meanwhile: other hosts' requests are unknown. */
const REDIS_AWAY_MS = 1_000;

interface LimitInput {
  readonly slug: string;
  readonly share: Share;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly prefix?: string;
}

export function createRequestLimit(
  connection: RedisConnection,
  { slug, share, clock, signal, prefix = PREFIX }: LimitInput,
) {
  const counter = `${prefix}:budget-${slug}`;
  const hold = `${counter}:hold`;
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
    holdBack: async (ms: number) => {
      await connection.eval(HOLD, 1, hold, Math.max(1, Math.ceil(ms)));
    },
  };
}

/** A worker may take the first place of a rate-limit window this long before the window begins. */
const REQUESTED_BEFORE_MS = 100;

/** `KEYS`: BullMQ's rate-limit counter. `ARGV`: ms since the job took its place, and the length of a window in ms. */
const RETURN = `
  local left = redis.call('PTTL', KEYS[1])
  -- A place of an earlier window is gone with it.
  if left > 0 and ARGV[2] - left >= tonumber(ARGV[1]) and tonumber(redis.call('GET', KEYS[1])) > 0 then
    redis.call('DECR', KEYS[1])
  end`;

/** Gives back the rate-limit place of a job that sent no request. Never rejects: a failure only slows the queue. */
export async function returnPlace(
  connection: RedisConnection,
  place: { readonly counter: string; readonly share: Share; readonly takenMsAgo: number },
): Promise<void> {
  const { counter, share, takenMsAgo } = place;
  await connection.eval(RETURN, 1, counter, takenMsAgo - REQUESTED_BEFORE_MS, share.duration).catch(() => {});
}

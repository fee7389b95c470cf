import { Queue } from "bullmq";
import { poll } from "../../support/poll.ts";
import { type Fault, repeatedly } from "../world/fault.ts";
import { MANNERS } from "../world/receiver.ts";
import type { World } from "../world/world.ts";

/** Long enough for messages that are under way to reach their limits, and for those that wait behind them. */
const TOLD_WITHIN_MS = 180_000;

/** Something to tell: an alert that the receiver has got, and that is over. */
const OVER = `WITH state AS (
    INSERT INTO usage.route_state (source_id, route) SELECT source_id, 'default' FROM usage.source
    ON CONFLICT (source_id, route) DO UPDATE SET next_try_at = NULL
  )
  INSERT INTO usage.alert (source_id, route, kind, owner, told, newest, since, told_at)
  SELECT source_id, 'default', 'difference', '', 1, 0, now(), now() FROM usage.source
  ON CONFLICT (source_id, route, kind, owner) DO UPDATE SET cleared_at = NULL`;
const IS_TOLD = "SELECT FROM usage.alert WHERE kind = 'difference' AND cleared_at IS NOT NULL";

/** As its schedule does, and more often, also after failures; each time there is something to tell. */
async function tell({ redis, sql }: World): Promise<void> {
  await sql(OVER);
  const { hostname: host, port, password } = new URL(redis.url);
  const queue = new Queue("control-default", {
    connection: { host, port: Number(port), password },
    prefix: "{usage-etl}",
  });
  queue.on("error", () => {});
  await queue.add("alert", {}, { attempts: 1, removeOnComplete: true, removeOnFail: true });
  await queue.close();
}

export const RECEIVER_FAULTS: readonly Fault[] = [
  {
    name: "receiver of alerts: drips, holds, refuses, redirects and never ends",
    on: "receiver",
    forS: 60,
    withinS: 45,
    isRandom: true,
    begin: async (world) => {
      const manners = MANNERS.filter((manner) => manner !== "well");
      const stop = repeatedly(4_000, async () => {
        world.receiver.manner = world.dice.pick(manners);
        await tell(world);
      });
      await poll(() => world.receiver.messages > 0, { deadlineMs: TOLD_WITHIN_MS });
      return async () => {
        await stop();
        world.receiver.manner = "well";
        // Beside other faults a server may be away; its schedule tells it too, a minute later.
        let isAsked = false;
        const isTold = async () => {
          if (isAsked) return (await world.sql(IS_TOLD)).length > 0;
          await tell(world);
          isAsked = true;
          return false;
        };
        await poll(isTold, { deadlineMs: TOLD_WITHIN_MS, everyMs: 500 });
      };
    },
  },
];

import { Queue } from "bullmq";
import { poll } from "../../support/poll.ts";
import { type FaultOf, repeatedly } from "../world/fault.ts";
import { MANNERS } from "../world/receiver.ts";
import type { World } from "../world/world.ts";

const SENT_WITHIN_MS = 180_000;

const OVER = `WITH state AS (
    INSERT INTO usage.route_state (source_id, route) SELECT source_id, 'default' FROM usage.source
    ON CONFLICT (source_id, route) DO UPDATE SET next_try_at = NULL
  )
  INSERT INTO usage.notification (source_id, route, kind, owner, count, newest, since, notified_at)
  SELECT source_id, 'default', 'difference', '', 1, 0, now(), now() FROM usage.source
  ON CONFLICT (source_id, route, kind, owner) DO UPDATE SET ended_at = NULL`;
const IS_SENT = "SELECT FROM usage.notification WHERE kind = 'difference' AND ended_at IS NOT NULL";

async function sendAlerts({ redis, sql }: World): Promise<void> {
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

export const RECEIVER_FAULTS: readonly FaultOf[] = [
  {
    name: "receiver of alerts: drips, holds, refuses, redirects and never ends",
    how: "60 s, within 45 s, random",
    begin: async (world) => {
      const manners = MANNERS.filter((manner) => manner !== "well");
      const stop = repeatedly(4_000, async () => {
        world.receiver.manner = world.dice.pick(manners);
        await sendAlerts(world);
      });
      await poll(() => world.receiver.messages > 0, { deadlineMs: SENT_WITHIN_MS });
      return async () => {
        await stop();
        world.receiver.manner = "well";
        const isSent = async () => {
          await sendAlerts(world);
          return poll(async () => (await world.sql(IS_SENT)).length > 0, {
            deadlineMs: 10_000,
            everyMs: 500,
          });
        };
        await poll(isSent, { deadlineMs: SENT_WITHIN_MS });
      };
    },
  },
];

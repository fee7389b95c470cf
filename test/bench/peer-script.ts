import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { z } from "zod";
import { answer, takeTask } from "./child.ts";
import { type PeerAnswer, type PeerTask, usageUrl } from "./peer.ts";
import { workspaceId } from "./shapes.ts";

/** The script that many would write first: one request, the whole answer checked, inserts that replace by key. */

const schema = z.object({
  usage: z.array(
    z.object({
      time_bucket: z.iso.datetime(),
      dimensions: z.object({ user_id: z.string(), user_email: z.string() }),
      traces: z.int().min(0),
    }),
  ),
});
const ROWS = 1_000;

interface Row {
  workspace_id: string;
  user_id: string;
  user_email: string;
  bucket_start: string;
  traces: number;
}

const task = await takeTask<PeerTask>();
const database = new Kysely<{ peer_usage: Row }>({
  dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: task.databaseUrl, max: 1 }) }),
});
const startedAt = performance.now();
const response = await fetch(usageUrl(task));
const { usage } = schema.parse(await response.json());
await database.transaction().execute(async (transaction) => {
  for (let from = 0; from < usage.length; from += ROWS) {
    await transaction
      .insertInto("peer_usage")
      .values(
        usage.slice(from, from + ROWS).map(({ time_bucket, dimensions, traces }) => ({
          workspace_id: workspaceId(0),
          ...dimensions,
          ...{ bucket_start: time_bucket, traces },
        })),
      )
      .onConflict((conflict) =>
        conflict
          .columns(["user_id", "bucket_start"])
          .doUpdateSet({ traces: sql`excluded.traces`, user_email: sql`excluded.user_email` }),
      )
      .execute();
  }
});
const ms = performance.now() - startedAt;
answer({ ms, peakMb: (process.resourceUsage().maxRSS * 1024) / 1e6 } satisfies PeerAnswer);
await database.destroy();
process.disconnect();

import { join } from "node:path";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { answer, takeTask } from "./harness.ts";
import { dayOf, recordsOf, type Shape, workspaceId } from "./shapes.ts";

/** A process of `npm run bench:peers`: what somebody would write in place of usage-etl, from one request that holds everything. */

export interface PeerTask {
  readonly way: "script" | "cloudquery";
  readonly shape: Shape;
  readonly databaseUrl: string;
  readonly platformUrl: string;
  /** Where packages were installed. */
  readonly folder: string;
}
export interface PeerAnswer {
  readonly ms: number;
  readonly peakMb: number;
}

const { way, shape, databaseUrl, platformUrl, folder } = await takeTask<PeerTask>();
const url = new URL("/api/v1/orgs/current/billing/granular-usage", platformUrl);
url.searchParams.set("start_time", new Date(dayOf(0)).toISOString());
url.searchParams.set("end_time", new Date(dayOf(shape.days)).toISOString());
url.searchParams.set("workspace_ids", workspaceId(0));
url.searchParams.set("group_by", "user");
const work = await (way === "script" ? script() : cloudQuery());
const startedAt = performance.now();
await work();
const ms = performance.now() - startedAt;
answer({ ms, peakMb: (process.resourceUsage().maxRSS * 1024) / 1e6 } satisfies PeerAnswer);
process.disconnect();

/** The script that many would write first: the whole answer checked, inserts that replace by key. */
async function script() {
  const [{ Kysely, PostgresDialect, sql }, { default: pg }, { z }] = await Promise.all([
    import("kysely"),
    import("pg"),
    import("zod"),
  ]);
  const rowsAtOnce = 1_000;
  const schema = z.object({
    usage: z.array(
      z.object({
        time_bucket: z.iso.datetime(),
        dimensions: z.object({ user_id: z.string(), user_email: z.string() }),
        traces: z.int().min(0),
      }),
    ),
  });
  interface Row {
    workspace_id: string;
    user_id: string;
    user_email: string;
    bucket_start: string;
    traces: number;
  }
  const database = new Kysely<{ peer_usage: Row }>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: databaseUrl, max: 1 }) }),
  });
  return async () => {
    const { usage } = schema.parse(await (await fetch(url)).json());
    await database.transaction().execute(async (transaction) => {
      for (let from = 0; from < usage.length; from += rowsAtOnce) {
        const rows = usage.slice(from, from + rowsAtOnce).map(({ time_bucket, dimensions, traces }) => ({
          workspace_id: workspaceId(0),
          ...dimensions,
          bucket_start: time_bucket,
          traces,
        }));
        await transaction
          .insertInto("peer_usage")
          .values(rows)
          .onConflict((conflict) =>
            conflict
              .columns(["user_id", "bucket_start"])
              .doUpdateSet({ traces: sql`excluded.traces`, user_email: sql`excluded.user_email` }),
          )
          .execute();
      }
    });
    await database.destroy();
  };
}

/** A table of CloudQuery's SDK that reads the answer. What it hands on are Arrow records, counted and thrown away. */
async function cloudQuery() {
  // Installed for the run: the types are not there.
  const packages = (path: string) => import(pathToFileURL(join(folder, "node_modules", path)).href);
  const sdk = (path: string) => packages(`@cloudquery/plugin-sdk-javascript/dist/${path}.js`);
  const [{ sync }, { createTable }, { createColumn }, { pathResolver }, { Int64 }] = await Promise.all([
    sdk("scheduler/scheduler"),
    sdk("schema/table"),
    sdk("schema/column"),
    sdk("schema/resolvers"),
    packages("@apache-arrow/esnext-esm/Arrow.node.js"),
  ]);
  let records = 0;
  const stream = new Writable({
    objectMode: true,
    write(message, _encoding, next) {
      if (message.insert !== undefined) records++;
      next();
    },
  });
  const table = createTable({
    name: "usage_user_daily",
    columns: [
      createColumn({ name: "time_bucket", primaryKey: true, resolver: pathResolver("time_bucket") }),
      createColumn({ name: "user_id", primaryKey: true, resolver: pathResolver("dimensions.user_id") }),
      createColumn({ name: "user_email", resolver: pathResolver("dimensions.user_email") }),
      createColumn({ name: "traces", type: new Int64(), resolver: pathResolver("traces") }),
    ],
    resolver: async (_client: unknown, _parent: unknown, rows: Writable) => {
      const { usage } = (await (await fetch(url)).json()) as { usage: readonly object[] };
      for (const row of usage) rows.write(row);
    },
  });
  const silent = () => {};
  return async () => {
    await sync({
      tables: [table],
      stream,
      concurrency: 10_000,
      deterministicCQId: false,
      logger: { info: silent, debug: silent, warn: console.error, error: console.error },
      client: { id: () => "bench" },
    });
    if (records !== recordsOf(shape)) throw new Error(`${records} of ${recordsOf(shape)} records`);
  };
}

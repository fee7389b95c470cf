import { join } from "node:path";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { answer, takeTask } from "./child.ts";
import { type PeerAnswer, type PeerTask, usageUrl } from "./peer.ts";
import { recordsOf } from "./shapes.ts";

/** A table of CloudQuery's SDK that reads one answer. What it hands on are Arrow records, counted and thrown away. */

const task = await takeTask<PeerTask>();
const { shape, folder = "" } = task;
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
    const { usage } = (await (await fetch(usageUrl(task))).json()) as { usage: readonly object[] };
    for (const row of usage) rows.write(row);
  },
});
const silent = () => {};
const startedAt = performance.now();
await sync({
  ...{ tables: [table], stream, concurrency: 10_000, deterministicCQId: false },
  logger: { info: silent, debug: silent, warn: console.error, error: console.error },
  client: { id: () => "bench" },
});
const ms = performance.now() - startedAt;
if (records !== recordsOf(shape)) throw new Error(`${records} of ${recordsOf(shape)} records`);
answer({ ms, peakMb: (process.resourceUsage().maxRSS * 1024) / 1e6 } satisfies PeerAnswer);
process.disconnect();

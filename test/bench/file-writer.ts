import { writeFiles } from "../../src/pipeline/export/write-files.ts";
import { openStore } from "../../src/store/db/database.ts";
import { openPlace } from "../../src/warehouse/place.ts";
import { answer, takeTask } from "./child.ts";

/** The measured process: what `usage-etl files write` does, from the first statement to the manifest. */
export interface FileWriterTask {
  readonly databaseUrl: string;
  readonly folder: string;
  readonly views: readonly string[];
}
export interface FileWriterAnswer {
  readonly ms: number;
  readonly cpuMs: number;
  readonly files: number;
  readonly rows: number;
  readonly written: number;
  readonly bytes: number;
  readonly idleMb: number;
  readonly peakMb: number;
}

const { databaseUrl, folder, views } = await takeTask<FileWriterTask>();
const store = openStore({ url: databaseUrl });
const { signal } = new AbortController();
const place = await openPlace(folder, { signal });
const idleMb = process.memoryUsage.rss() / 1e6;
const cpu = process.cpuUsage();
const startedAt = performance.now();
const wrote = await writeFiles({
  ...{ store, signal, place, views, source: "default", keepMs: 0, release: "bench" },
});
const ms = performance.now() - startedAt;
const { user, system } = process.cpuUsage(cpu);
if (wrote === undefined) throw new Error("another process writes these files");
answer({
  ms,
  cpuMs: (user + system) / 1000,
  ...{ files: wrote.files, rows: wrote.rows, written: wrote.written, bytes: wrote.bytes },
  idleMb,
  peakMb: (process.resourceUsage().maxRSS * 1024) / 1e6,
} satisfies FileWriterAnswer);
await store.close();
process.disconnect();

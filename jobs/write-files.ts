import { writeSourceFiles } from "../src/pipeline/export/write-files.ts";
import { CONTROL, defineJob } from "./job.ts";

/** Writes Parquet files for a warehouse. Off unless `USAGE_EXPORT_DIR` is set. */
export const writeFilesJob = defineJob({
  ...CONTROL,
  name: "write-files",
  handle: async ({ source, files, signal }) => {
    if (files === undefined) return { skipped: "USAGE_EXPORT_DIR is not set for this worker" };
    const written = await writeSourceFiles(await source.known(), files, signal);
    if (written === undefined) return { skipped: "another process writes these files" };
    const { asOf: _, ...counts } = written;
    return counts;
  },
});

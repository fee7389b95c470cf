import { CONTROL, defineJob, type FeatureJob } from "../../../jobs/job.ts";
import type { Config } from "../../core/base/config.ts";
import { releaseOf } from "../../core/base/root.ts";
import { writeSourceFiles } from "./write-files.ts";

export function filesJobs({ files: { address, ...files } }: Config, slug: string): FeatureJob[] {
  const job = defineJob({
    ...CONTROL,
    name: "write-files",
    handle: async ({ source, signal }) => {
      if (address === undefined) return { skipped: "USAGE_EXPORT_DIR is not set for this worker" };
      const settings = { ...files, address, source: slug, release: releaseOf() };
      const written = await writeSourceFiles(await source.known(), settings, signal);
      if (written === undefined) return { skipped: "another process writes these files" };
      const { asOf: _, ...counts } = written;
      return counts;
    },
  });
  // After the nightly proof and repairs, so that the files include them.
  return [{ job, repeat: address === undefined ? undefined : { pattern: "30 5 * * *", tz: "UTC" } }];
}

import { UnrecoverableError } from "bullmq";
import { EtlError } from "../src/errors.ts";
import { asRun, endOfProbe } from "../src/pipeline/as-run.ts";
import { probeMeter } from "../src/pipeline/proof/probe.ts";
import { CONTROL, defineJob } from "./job.ts";

/** Runs the meter probe: sends known traffic and compares it with what is billed. Off unless `USAGE_PROBE_EVERY` is set. */
export const probeJob = defineJob({
  ...CONTROL,
  name: "probe",
  // A retry would send, and cost, the traffic again. The next scheduled probe is soon enough.
  options: { ...CONTROL.options, attempts: 1 },
  handle: async ({ source, probe }) => {
    if (probe === undefined) {
      const cause = new EtlError({
        code: "probe_unconfigured",
        message: "This process has no deployment to probe.",
        next: "Start all workers with the same settings.",
      });
      throw Object.assign(new UnrecoverableError(cause.message), { cause });
    }
    const {
      state,
      expected,
      delayMs,
      figures,
      code = "",
    } = await asRun(
      await source.known(),
      "probe",
      async (runId) => probeMeter({ ...(await source.open()), runId }, probe),
      endOfProbe,
    );
    const differing = figures.filter((figure) => figure.difference !== 0).length;
    return { state, expected, differing, delayMs: delayMs ?? -1, code };
  },
});

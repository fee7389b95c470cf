import { createOutput } from "../../src/cli/report/output.ts";
import { createSession } from "../../src/cli/session/session.ts";
import { eachSource } from "../../src/cli/session/sources.ts";
import { readConfig } from "../../src/config/config.ts";
import { planSync } from "../../src/pipeline/sync/sync.ts";
import { answer, takeTask } from "./child.ts";

/** The measured process: what the job of a sync does in a worker, in a process of its own, so that the peak is its own. */

export interface PlannerTask {
  readonly environment: Readonly<Record<string, string>>;
}
export interface PlannerAnswer {
  readonly ms: number;
  /** User and system time of this process. */
  readonly cpuMs: number;
  readonly planned: number;
  readonly entered: number;
  /** Peak memory of the process, less what it held before. */
  readonly moreMb: number;
  readonly idleMb: number;
}

const { environment } = await takeTask<PlannerTask>();
const closers: (() => Promise<void>)[] = [];
const session = createSession({
  config: readConfig(environment),
  output: createOutput({ json: true }),
  signal: new AbortController().signal,
  onClose: (close) => void closers.push(close),
});
await eachSource(session, async (source) => {
  const idle = process.resourceUsage().maxRSS;
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const { planned, entered } = await planSync(source);
  const ms = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  const megabytes = (kib: number) => (kib * 1024) / 1e6;
  answer({
    ...{ ms, planned, entered },
    cpuMs: (user + system) / 1000,
    moreMb: megabytes(process.resourceUsage().maxRSS - idle),
    idleMb: megabytes(idle),
  } satisfies PlannerAnswer);
  return 0;
});
for (const close of closers.reverse()) await close();
process.disconnect();

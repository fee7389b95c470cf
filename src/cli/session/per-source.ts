import type { OpenSource } from "../../pipeline/source/source.ts";
import type { RunKind } from "../../store/work/runs.ts";
import type { Session } from "./session.ts";

/** Runs `work` for every source and prints the results, with `--json` as an array. Returns the first exit code that applies. */
export async function reportPerSource<T extends object>(
  session: Session,
  given: {
    work: (source: OpenSource) => Promise<T>;
    exitOf: (result: T) => number;
    describe: (results: Readonly<Record<string, T>>) => string;
    /** What `--json` shows beside `source`; default: the result. */
    toData?: (result: T) => object;
    /** Makes the work of each source one run of the history. */
    kind?: RunKind;
  },
): Promise<number> {
  const results: Record<string, T> = {};
  const exit = await session.eachSource(async (source) => {
    const result = await given.work(source);
    results[source.config.slug] = result;
    return given.exitOf(result);
  }, given.kind);
  const { toData = (result: T): object => result } = given;
  const data = Object.entries(results).map(([source, result]) => ({ source, ...toData(result) }));
  session.output.data(data, () => given.describe(results));
  return exit;
}

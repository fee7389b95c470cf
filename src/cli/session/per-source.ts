import type { OpenSource } from "../../pipeline/source/source.ts";
import type { RunKind } from "../../store/work/runs.ts";
import type { Session } from "./session.ts";

/** Runs `work` for every source and prints the results by slug. Returns the first exit code that applies. */
export async function reportPerSource<T>(
  session: Session,
  given: {
    work: (source: OpenSource) => Promise<T>;
    exitOf: (result: T) => number;
    describe: (results: Readonly<Record<string, T>>) => string;
    /** What `--json` shows; default: the results. */
    toData?: (result: T) => unknown;
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
  const { toData = (result: T): unknown => result } = given;
  const data = Object.fromEntries(Object.entries(results).map(([slug, result]) => [slug, toData(result)]));
  session.output.data(data, () => given.describe(results));
  return exit;
}

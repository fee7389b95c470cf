import type { Output } from "../../cli/report/output.ts";
import { EXIT } from "../../cli/session/exit.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { fetchTotals, newestFetch } from "../../store/figures/load-totals.ts";
import type { Loader } from "./loader.ts";

export const SYNC_EVERY = { iso: "PT30S", ms: 30_000 };
/** How soon a backfill that somebody started is taken up, where no service does it. */
const ENQUEUE_EVERY_MS = 5_000;

/** Prints what each further sync did, until Ctrl-C. With a loader, nobody else does these syncs. */
export async function runOn(
  sources: readonly [OpenSource, ...OpenSource[]],
  { output, signal, loader }: { output: Output; signal: AbortSignal; loader: Loader | undefined },
): Promise<number> {
  const [{ store, clock }] = sources;
  for (;;) {
    const before = await newestFetch(store.db);
    const nextSync = clock.now() + SYNC_EVERY.ms;
    try {
      while (clock.now() < nextSync) {
        await clock.wait(loader === undefined ? SYNC_EVERY.ms : ENQUEUE_EVERY_MS, signal);
        for (const source of loader === undefined ? [] : sources) await loader?.enqueue(source);
      }
    } catch (error) {
      if (signal.aborted) return EXIT.done;
      throw error;
    }
    for (const source of loader === undefined ? [] : sources) await loader?.sync(source);
    let [requests, failed] = [0, 0];
    for (const { config } of sources) {
      const totals = await fetchTotals(store.db, { source: config.slug, after: before });
      requests += totals.reduce((sum, one) => sum + one.requests, 0);
      failed += totals.reduce((sum, one) => sum + one.failed, 0);
    }
    output.note(
      `${new Date(clock.now()).toISOString()}: ${requests} requests for what is not final, ${failed} failed`,
    );
  }
}

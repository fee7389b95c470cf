import { PlatformError } from "../../errors.ts";
import { isKeyRefused, keepRefusal, type OpenSource } from "../source/source.ts";
import { GIVE_UP_AFTER, platformUnreachable } from "./run-inline.ts";

interface Failed<T> {
  readonly one: T;
  readonly code: string;
  readonly message: string;
}

/**
 * Does the work of each in turn, with evidence that is fresh; returns those that the platform failed. Throws where the
 * source as a whole must stop: a refused key, a platform that is down, anything that is not the platform's.
 */
export async function sequentially<T>(
  source: OpenSource,
  all: readonly T[],
  {
    work,
    onProgress,
  }: {
    work: (one: T) => Promise<void>;
    onProgress: (progress: { done: number; total: number }) => void;
  },
): Promise<Failed<T>[]> {
  const failed: Failed<T>[] = [];
  let [done, gaveUpInARow] = [0, 0];
  for (const one of all) {
    await source.access.fresh();
    try {
      await work(one);
      gaveUpInARow = 0;
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (isKeyRefused(error)) {
        await keepRefusal(source, source.sourceId, error);
        throw error;
      }
      failed.push({ one, code: error.code, message: error.message });
      gaveUpInARow = error.retryable ? gaveUpInARow + 1 : 0;
      if (gaveUpInARow >= GIVE_UP_AFTER) throw platformUnreachable(error);
    }
    onProgress({ done: ++done, total: all.length });
  }
  return failed;
}

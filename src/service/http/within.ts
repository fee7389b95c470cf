const CHECK_WITHIN_MS = 3_000;

/** Rejects if the work has not ended within three seconds. It goes on meanwhile. */
export async function within<T>(work: Promise<T>, ms = CHECK_WITHIN_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

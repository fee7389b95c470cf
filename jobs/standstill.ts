const LOOK_EVERY_MS = 1_000;
/** Shorter standstills lose no lock. */
const LONG_MS = 10_000;
/** A lock that is lost is noticed that late at most. */
const LATELY_MS = 60_000;

/** Notices that this process stood still: that it was stopped, or that something blocked its event loop. */
export function watchStandstills() {
  let lookedAt = performance.now();
  let stoodAt = Number.NEGATIVE_INFINITY;
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - lookedAt > LONG_MS) stoodAt = now;
    lookedAt = now;
  }, LOOK_EVERY_MS).unref();
  return {
    stoodStillLately: () => performance.now() - stoodAt < LATELY_MS,
    close: () => clearInterval(timer),
  };
}

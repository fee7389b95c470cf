/** A request quota: at most `max` requests in any `duration` milliseconds, shared by all hosts. */
export interface Share {
  readonly max: number;
  readonly duration: number;
}

/**
 * Nine tenths of a source's rate limit go to the fetch queue, whose limiter BullMQ keeps. The rest goes to control jobs
 * (contact, reconciling), which do not use that queue. Together they never exceed the limit.
 */
export function sharesOf(requestsPer10s: number): { readonly fetch: Share; readonly control: Share } {
  if (requestsPer10s === 1) {
    const half = { max: 1, duration: 20_000 };
    return { fetch: half, control: half };
  }
  const control = Math.max(1, Math.floor(requestsPer10s / 10));
  return {
    fetch: { max: requestsPer10s - control, duration: 10_000 },
    control: { max: control, duration: 10_000 },
  };
}

/** So many requests in any so many milliseconds, over all hosts. */
export interface Share {
  readonly max: number;
  readonly duration: number;
}

/**
 * A source's budget of requests per 10 s, divided: nine tenths are the fetch queue's, whose limiter BullMQ keeps; the rest is for
 * control jobs, which ask outside of it (contact, reconciling). Together they are the budget, to the smallest one.
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

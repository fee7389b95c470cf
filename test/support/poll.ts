import { setTimeout as pause } from "node:timers/promises";

/**
 * Asks again until `condition` gives something truthy, and returns that. Past the deadline it throws what `condition`
 * threw last, or that it never held. The deadline is a bound, not a measure: a machine that others use may take long.
 */
export async function poll<T>(
  condition: () => T | Promise<T>,
  { deadlineMs = 20_000, everyMs = 10 }: { deadlineMs?: number; everyMs?: number } = {},
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    let reason: unknown = new Error(`not within ${deadlineMs} ms: ${condition}`);
    try {
      const held = await condition();
      if (held) return held;
    } catch (error) {
      reason = error;
    }
    if (performance.now() > deadline) throw reason;
    await pause(everyMs);
  }
}

import type { FastifyReply } from "fastify";
import type { Clock } from "../../clock.ts";
import { EtlError } from "../../errors.ts";
import type { Logger } from "../../log.ts";

const LOOK_EVERY_MS = 2_000;
/** Then the stream ends, and a page that is still looked at asks anew: one that is not costs nothing. */
const LASTS_MS = 10 * 60_000;
const MOST = 50;
let open = 0;

/** Sends a page's fragment at once and whenever it changed, until the page is left. */
export async function liveUpdates(
  reply: FastifyReply,
  { fragment, clock, log }: { fragment: () => Promise<string>; clock: Clock; log: Logger },
): Promise<void> {
  if (open >= MOST) {
    throw new EtlError({
      code: "pages_busy",
      message: `${MOST} pages are followed already.`,
      next: "Reload the page to see it anew.",
    });
  }
  open++;
  const left = new AbortController();
  reply.raw.once("close", () => left.abort());
  try {
    await reply.sse.send(changes({ fragment, clock, signal: left.signal }));
  } catch (error) {
    if (!left.signal.aborted) {
      log.warn({ code: "live_page", reason: error instanceof Error ? error.message : String(error) }, "page");
    }
  } finally {
    open--;
  }
}

async function* changes(given: { fragment: () => Promise<string>; clock: Clock; signal: AbortSignal }) {
  const { fragment, clock, signal } = given;
  const ends = clock.now() + LASTS_MS;
  let last: string | undefined;
  while (!signal.aborted && clock.now() < ends) {
    const next = await fragment();
    if (next !== last) yield { event: "fragment", data: next };
    last = next;
    await clock.wait(LOOK_EVERY_MS, signal).catch(() => {});
  }
}

import type { FastifyReply } from "fastify";
import type { Clock } from "../../clock.ts";
import { EtlError } from "../../errors.ts";
import type { Logger } from "../../log.ts";

/** Then the stream ends, and a page that is still looked at asks anew: one that is not costs nothing. */
const LASTS_MS = 10 * 60_000;
const MOST = 50;
let open = 0;

interface Followed {
  /** What the page shows as of an instant, epoch milliseconds, and how long ago that was. */
  readonly fragment: () => Promise<{
    readonly content: string;
    readonly asOf: number;
    readonly lagMs: number;
  }>;
  readonly everyMs: number;
  readonly clock: Clock;
}

/** Sends a page's fragment at once and whenever it changed, until the page is left. */
export async function liveUpdates(
  reply: FastifyReply,
  { fragment, everyMs, clock, log }: Followed & { readonly log: Logger },
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
    await reply.sse.send(changes({ fragment, everyMs, clock, signal: left.signal }));
  } catch (error) {
    if (!left.signal.aborted) {
      log.warn({ code: "live_page", reason: error instanceof Error ? error.message : String(error) }, "page");
    }
  } finally {
    open--;
  }
}

async function* changes({ fragment, everyMs, clock, signal }: Followed & { readonly signal: AbortSignal }) {
  const ends = clock.now() + LASTS_MS;
  let last: string | undefined;
  while (!signal.aborted && clock.now() < ends) {
    const { content, asOf, lagMs } = await fragment();
    // One that is the same is still as of now.
    const event = content === last ? { event: "same", data: "" } : { event: "fragment", data: content };
    yield { id: lagMs === 0 ? `${asOf}` : `${asOf} ${Math.round(lagMs)}`, ...event };
    last = content;
    await clock.wait(everyMs, signal).catch(() => {});
  }
}

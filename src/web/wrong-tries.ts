import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../core/base/clock.ts";
import { networkOf } from "./proxies.ts";

const MOST_A_MINUTE = 10;
const MINUTE_MS = 60_000;
const MOST_ADDRESSES = 10_000;

/** Limits wrong tokens of each address, against guessing. Right tokens are always accepted. */
export class WrongTries {
  readonly #clock: Pick<Clock, "now">;
  readonly #of = new Map<string, { tries: number; readonly ends: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Notes a wrong token. Returns whether its address already had too many in this minute. */
  note(address: string): boolean {
    const now = this.#clock.now();
    const from = networkOf(address);
    const known = this.#of.get(from);
    if (known !== undefined && now < known.ends) {
      known.tries += 1;
      return known.tries > MOST_A_MINUTE;
    }
    this.#of.delete(from);
    this.#of.set(from, { tries: 1, ends: now + MINUTE_MS });
    const [oldest] = this.#of.keys();
    if (this.#of.size > MOST_ADDRESSES && oldest !== undefined) this.#of.delete(oldest);
    return false;
  }
}

/** Compares digests of one length, so that the time tells nothing about the token. */
export function isSameToken(given: string, token: string): boolean {
  const digest = (text: string) => createHmac("sha256", "compare").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

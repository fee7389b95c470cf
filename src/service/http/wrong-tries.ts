import type { Clock } from "../../clock.ts";

const MOST_A_MINUTE = 10;
const MINUTE_MS = 60_000;
const MOST_ADDRESSES = 10_000;

/** A bound against guessing a token, for each address that connects. Right tokens do not count. */
export class WrongTries {
  readonly #clock: Pick<Clock, "now">;
  readonly #of = new Map<string, { tries: number; readonly ends: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  areTooMany(address: string): boolean {
    const known = this.#of.get(address);
    return known !== undefined && known.tries >= MOST_A_MINUTE && this.#clock.now() < known.ends;
  }

  note(address: string): void {
    const now = this.#clock.now();
    const known = this.#of.get(address);
    if (known !== undefined && now < known.ends) {
      known.tries += 1;
      return;
    }
    this.#of.delete(address);
    this.#of.set(address, { tries: 1, ends: now + MINUTE_MS });
    const [oldest] = this.#of.keys();
    if (this.#of.size > MOST_ADDRESSES && oldest !== undefined) this.#of.delete(oldest);
  }
}

import { endSession, isSessionEnded } from "../../store/activity/ended-sessions.ts";
import type { Database } from "../../store/db/database.ts";
import { within } from "../http/health.ts";

/** Without Postgres pages have nothing to show, so a page that says so waits no longer. */
const ASKED_WITHIN_MS = 1_000;
const MOST_REMEMBERED = 1_000;

export class EndedSessions {
  readonly #store: Database;
  readonly #reader: Database;
  readonly #known = new Set<string>();

  constructor({ store, reader }: { store: Database; reader: Database }) {
    this.#store = store;
    this.#reader = reader;
  }

  async end(session: string, until: number): Promise<void> {
    this.#remember(session);
    await endSession(this.#store, { session, until });
  }

  async has(session: string): Promise<boolean> {
    if (this.#known.has(session)) return true;
    const isEnded = await within(isSessionEnded(this.#reader, session), ASKED_WITHIN_MS).catch(() => false);
    if (isEnded) this.#remember(session);
    return isEnded;
  }

  #remember(session: string): void {
    this.#known.add(session);
    const [oldest] = this.#known;
    if (this.#known.size > MOST_REMEMBERED && oldest !== undefined) this.#known.delete(oldest);
  }
}

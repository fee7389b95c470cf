import { UnreachableError } from "../core/base/errors.ts";
import type { Address } from "../core/store/db/client.ts";
import { openStore, type Store } from "../core/store/db/database.ts";
import { endedAmong, endSession, forgetExpired } from "./ended-sessions.ts";
import { within } from "./health.ts";

/** Separate from the pages' pool, so that pages and checks of sessions do not delay each other. */
const SESSIONS_POOL = { maxConnections: 2, statementTimeoutMs: 1_000 } as const;
/** Longer than the timeout of a statement, because a new connection may be needed first. */
const RESPONSE_WITHIN_MS = 1_500;
const MOST_REMEMBERED = 1_000;

interface Check {
  readonly sessions: Set<string>;
  readonly ended: Promise<ReadonlySet<string>>;
}

export class EndedSessions {
  readonly #store: Store;
  readonly #known = new Set<string>();
  #running: Promise<ReadonlySet<string>> = Promise.resolve(new Set());
  #next: Check | undefined;

  constructor(url: Address) {
    this.#store = openStore({ url, ...SESSIONS_POOL });
  }

  /** After the error `postgres_unreachable` the session has ended in this process, but perhaps not in others. */
  async end(session: string, until: number): Promise<void> {
    this.#remember(session);
    const { db } = this.#store;
    await within(endSession(db, { session, until }), RESPONSE_WITHIN_MS).catch((cause: Error) => {
      throw unreachable(`You may still be logged in: ${cause.message}.`, cause);
    });
    // If old rows cannot be deleted, the next logout deletes them.
    await within(forgetExpired(db), RESPONSE_WITHIN_MS).catch(() => {});
  }

  /** Error: `postgres_unreachable`. */
  async has(session: string): Promise<boolean> {
    if (this.#known.has(session)) return true;
    const ended = await this.#check(session).catch((cause: Error) => {
      throw unreachable(
        `Whether this login has ended is in Postgres, which cannot be read now: ${cause.message}.`,
        cause,
      );
    });
    if (ended.has(session)) this.#remember(session);
    return this.#known.has(session);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /**
   * One statement at a time checks all sessions that wait. A session is added before the statement begins, so the statement
   * sees every earlier logout of any process.
   */
  #check(session: string): Promise<ReadonlySet<string>> {
    this.#next ??= this.#checkAfter(this.#running);
    this.#next.sessions.add(session);
    return this.#next.ended;
  }

  #checkAfter(running: Promise<unknown>): Check {
    const sessions = new Set<string>();
    const begin = () => {
      this.#next = undefined;
      this.#running = within(endedAmong(this.#store.db, [...sessions]), RESPONSE_WITHIN_MS);
      return this.#running;
    };
    return { sessions, ended: running.then(begin, begin) };
  }

  #remember(session: string): void {
    this.#known.add(session);
    const [oldest] = this.#known;
    if (this.#known.size > MOST_REMEMBERED && oldest !== undefined) this.#known.delete(oldest);
  }
}

function unreachable(message: string, cause: Error): UnreachableError {
  const next = "Try again in some seconds. `usage-etl doctor` says what is wrong with Postgres.";
  return new UnreachableError({ code: "postgres_unreachable", message, next, cause });
}

import { AsyncLocalStorage } from "node:async_hooks";
import pg from "pg";
import { isPooled } from "../../../support/database.ts";

interface Statement {
  readonly n: number;
  readonly text: string;
  readonly backend: number;
}

export interface Interceptor {
  /** Returns the text to send instead. Not called for COPY. */
  rewrite?(text: string): string;
  /** The statement waits for it, except for COPY. If it rejects, the statement fails with the same error. */
  before?(statement: Statement): Promise<void>;
  after?(statement: Statement): Promise<void>;
  failed?(error: unknown): void;
}

interface Context {
  readonly interceptor: Interceptor;
  count: number;
}

const contexts = new AsyncLocalStorage<Context>();

export function intercepted<T>(interceptor: Interceptor, work: () => Promise<T>): Promise<T> {
  return contexts.run({ interceptor, count: 0 }, work);
}

interface Paused<T> {
  readonly stopped: boolean;
  readonly result: Promise<T>;
  goOn(): void;
}

export async function pausedAt<T>(
  n: number,
  work: () => Promise<T>,
  failed?: (error: unknown) => void,
): Promise<Paused<T>> {
  const gate = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<boolean>();
  const before = async (statement: Statement) => {
    if (statement.n !== n) return;
    reached.resolve(true);
    await gate.promise;
  };
  const result = intercepted({ before, ...(failed === undefined ? {} : { failed }) }, work);
  const ended = () => reached.resolve(false);
  void result.then(ended, ended);
  return { stopped: await reached.promise, result, goOn: gate.resolve };
}

const backends = new WeakMap<pg.Client, number>();

function knownBackend(client: pg.Client): number {
  return backends.get(client) ?? (client as unknown as { processID: number }).processID;
}

async function queryBackend(client: pg.Client, text: string): Promise<number> {
  if (!isPooled() || /^\s*(BEGIN|ROLLBACK)/i.test(text)) return knownBackend(client);
  // A transaction that has failed cannot be asked.
  const response = await (original.call(client, "SELECT pg_backend_pid() AS pid") as Promise<pg.QueryResult>)
    .then(({ rows }) => rows[0]?.pid as number)
    .catch(() => knownBackend(client));
  backends.set(client, response);
  return response;
}

type Query = (this: pg.Client, ...args: unknown[]) => unknown;
const original = pg.Client.prototype.query as unknown as Query;

const query: Query = function (...args) {
  const context = contexts.getStore();
  if (context === undefined) return original.apply(this, args);
  const { interceptor } = context;
  const [first] = args as [string | { text?: string; cursor?: { text: string }; submit?: unknown }];
  const isStream = typeof first === "object" && typeof first.submit === "function";
  const text = typeof first === "string" ? first : (first.text ?? first.cursor?.text ?? "COPY");
  const n = ++context.count;
  if (isStream) {
    interceptor.before?.({ n, text, backend: knownBackend(this) }).catch(() => {});
    return original.apply(this, args);
  }
  return (async () => {
    const statement = { n, text, backend: await queryBackend(this, text) };
    await interceptor.before?.(statement);
    const result = await Promise.resolve(original.apply(this, args)).catch((error: unknown) => {
      interceptor.failed?.(error);
      throw error;
    });
    await interceptor.after?.(statement);
    return result;
  })();
};
pg.Client.prototype.query = query as unknown as typeof pg.Client.prototype.query;

/**
 * A fault at the n-th statement of a load.
 *
 * `die`: this process ends and sends nothing more. `kill`: the backend ends. `lose`: the statement succeeds, but its reply
 * is lost. For COMMIT, the caller cannot know then whether it happened.
 */
export interface Fault {
  readonly kind: "die" | "kill" | "lose";
  readonly at: number;
}

export interface Trace {
  readonly texts: string[];
  commits: number;
}

export function withFault(
  fault: Fault | null,
  reader: pg.Client,
): { interceptor: Interceptor; trace: Trace } {
  const trace: Trace = { texts: [], commits: 0 };
  let isWithin = false;
  return {
    trace,
    interceptor: {
      async before({ n, text, backend }) {
        trace.texts.push(text);
        if (fault?.kind === "die" && n >= fault.at)
          throw new Error(`process died before statement ${fault.at}`);
        if (fault?.kind === "kill" && n === fault.at) {
          // Returns when the backend is gone.
          await reader.query("SELECT pg_terminate_backend($1, 5000)", [backend]);
        }
      },
      async after({ n, text }) {
        if (text.startsWith("BEGIN")) isWithin = true;
        else if (text === "COMMIT" || !isWithin) trace.commits++;
        if (/^(COMMIT|ROLLBACK)/.test(text)) isWithin = false;
        if (fault?.kind === "lose" && n === fault.at) {
          throw Object.assign(new Error(`reply to statement ${n} was lost`), { code: "ECONNRESET" });
        }
      },
    },
  };
}

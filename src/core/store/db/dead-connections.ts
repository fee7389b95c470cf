import type pg from "pg";
import { UnreachableError } from "../../base/errors.ts";
import { type Address, ClosingClient, streamOf } from "./client.ts";

/**
 * A connection can be open and dead: behind a load balancer or a proxy, TCP goes on without Postgres. pg's own limits
 * (`query_timeout`, `statement_timeout`) must allow for the longest statement, which takes minutes. So connections that wait
 * for Postgres are checked from time to time. If no byte passed since the last check, the connection is examined over a new
 * one. It is closed if twice in a row Postgres does not work on its statement, or does not respond.
 */
export interface SilenceLimits {
  readonly lookEveryMs: number;
  readonly connectMs: number;
  readonly responseMs: number;
  /** Longest time without a byte, even while Postgres works. In a transaction, Postgres's own limit is shorter. */
  readonly longestMs: number;
}

export const SILENCE_LIMITS: SilenceLimits = {
  lookEveryMs: 5_000,
  connectMs: 10_000,
  responseMs: 4_000,
  longestMs: 3_600_000,
};

const HURRY_MS = 1_500;

const LOOKS = 2;

type Driver = pg.Client & { readonly readyForQuery: boolean; readonly processID: number };

interface Watched {
  readonly client: Driver;
  bytes: number;
  quiet: number;
  lost: number;
}

export function watchSilence(
  address: Address,
  limits: SilenceLimits,
  onClosed: (connections: number) => void,
) {
  const { lookEveryMs, responseMs } = limits;
  const watched = new Set<Watched>();
  let looking: Promise<void> | undefined;

  const timer = setInterval(() => {
    looking ??= look(watched, { address, limits, onClosed }).finally(() => {
      looking = undefined;
    });
  }, lookEveryMs).unref();

  let hurrying: NodeJS.Timeout | undefined;

  function closeQuiet(): void {
    for (const one of watched) {
      if (isIdle(one)) streamOf(one.client).destroy(silence(HURRY_MS));
    }
  }

  return {
    /** Shortens the wait to a second or two at shutdown. Nothing is lost: other processes repeat the work. */
    hurry: () => {
      hurrying ??= setInterval(closeQuiet, HURRY_MS).unref();
    },
    add: (given: pg.Client) => {
      const one: Watched = { client: given as Driver, bytes: 0, quiet: 0, lost: 0 };
      watched.add(one);
      given.once("end", () => watched.delete(one));
    },
    closeAll: async (end: () => Promise<void>) => {
      const late = setTimeout(
        () => {
          for (const { client } of watched) streamOf(client).destroy(silence(responseMs));
        },
        hurrying === undefined ? responseMs : HURRY_MS,
      );
      await end().finally(() => {
        clearTimeout(late);
        clearInterval(timer);
        clearInterval(hurrying);
      });
      await looking;
    },
  };
}

function isIdle(one: Watched): boolean {
  const { bytesRead, bytesWritten, writableLength } = streamOf(one.client);
  const bytes = bytesRead + bytesWritten - writableLength;
  const isIdle = !one.client.readyForQuery && bytes === one.bytes;
  one.bytes = bytes;
  return isIdle;
}

interface Look {
  readonly address: Address;
  readonly limits: SilenceLimits;
  readonly onClosed: (connections: number) => void;
}

async function look(
  watched: Set<Watched>,
  { address, limits: { lookEveryMs, longestMs, responseMs }, onClosed }: Look,
): Promise<void> {
  const silent = countIdle(watched);
  if (silent.length === 0) return;
  const close = (those: readonly Watched[]) => {
    for (const one of those) {
      watched.delete(one);
      streamOf(one.client).destroy(silence(one.quiet * lookEveryMs));
    }
    if (those.length > 0) onClosed(those.length);
  };
  const isOverdue = ({ quiet }: Watched) => quiet * lookEveryMs >= longestMs;
  const endOf = (one: Watched): Backend["end"] => {
    if (isOverdue(one)) return "always";
    return one.lost === LOOKS - 1 ? "idle" : "never";
  };
  const backends = silent.map((one) => ({ pid: one.client.processID, end: endOf(one) }));
  close(silent.filter(isOverdue));
  const idle = await idleBackends(address, backends, responseMs);
  const still = silent.filter((one) => watched.has(one) && isIdle(one));
  for (const one of still) {
    one.lost = idle === undefined || idle.has(one.client.processID) ? one.lost + 1 : 0;
  }
  close(still.filter(({ lost }) => lost >= LOOKS));
}

function countIdle(watched: Iterable<Watched>): Watched[] {
  const silent: Watched[] = [];
  for (const one of watched) {
    if (isIdle(one)) {
      one.quiet++;
      silent.push(one);
    } else Object.assign(one, { quiet: 0, lost: 0 });
  }
  return silent;
}

function silence(ms: number): UnreachableError {
  return new UnreachableError({
    code: "postgres_silent",
    message: `Postgres did not respond for ${Math.round(ms / 1000)} s, so the connection was closed.`,
    next: "Work goes on with a new connection. If it happens often, look at what lies between this host and Postgres.",
    retryable: true,
  });
}

interface Backend {
  readonly pid: number;
  /** When Postgres ends the backend, whose locks would outlive the connection. */
  readonly end: "always" | "idle" | "never";
}

/**
 * Returns the backends that work on no statement: they wait for this process, or are gone. Undefined: Postgres does not
 * respond. Behind a pooler with its own process ids, none is returned or ended.
 */
async function idleBackends(
  address: Address,
  backends: readonly Backend[],
  responseMs: number,
): Promise<Set<number> | undefined> {
  const client = new ClosingClient({
    address,
    application_name: "usage-etl silence",
    connectionTimeoutMillis: responseMs,
    query_timeout: responseMs,
    closeMs: 0,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number; idle: boolean }>(
      `SELECT b.pid, i.idle, CASE WHEN b.ends = 'always' OR (b.ends = 'idle' AND i.idle) THEN pg_terminate_backend(a.pid) END
       FROM unnest($1::integer[], $2::text[]) b (pid, ends) LEFT JOIN pg_stat_activity a USING (pid)
       CROSS JOIN LATERAL (
         SELECT a.pid IS NULL OR a.state LIKE 'idle%' OR coalesce(a.wait_event_type = 'Client', false)
       ) i (idle)
       WHERE pg_backend_pid() = $3`,
      [
        backends.map(({ pid }) => pid),
        backends.map(({ end }) => end),
        (client as unknown as Driver).processID,
      ],
    );
    return new Set(rows.flatMap(({ pid, idle }) => (idle ? [pid] : [])));
  } catch (error) {
    // Postgres responds, but has too many connections.
    return (error as { code?: string }).code === "53300" ? new Set() : undefined;
  } finally {
    await client.end().catch(() => {});
  }
}

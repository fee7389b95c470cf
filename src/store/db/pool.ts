import type pg from "pg";
import { type Address, type ClosingClient, type SessionLimit, urlOf } from "./client.ts";
import { isLoginRefused, tlsError } from "./connection-error.ts";

/** What the store needs of a pool. */
export interface Pool {
  connect(): Promise<pg.PoolClient>;
  end(): Promise<void>;
  readonly options: object;
}

/**
 * The pool, of which nobody gets a connection that was made with an earlier address: a rotated login may be revoked. A login
 * that is refused while the address changes is tried again with the new one.
 */
export function currentOf(
  pool: pg.Pool,
  { limit, ...of }: { address: Address; variable: string; limit: SessionLimit },
): Pool {
  const { address } = of;
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => {
      for (;;) {
        const url = urlOf(address);
        try {
          const client = await pool.connect();
          if ((client as unknown as ClosingClient).url === urlOf(address)) return client;
          client.release(true);
        } catch (error) {
          if (!limit.isRefused && isParameterRefused(error)) {
            limit.isRefused = true;
            continue;
          }
          if (!isLoginRefused(error) || urlOf(address) === url) throw tlsError(error, of) ?? error;
        }
      }
    },
  };
}

/** PgBouncer's words. */
function isParameterRefused(error: unknown): boolean {
  return error instanceof Error && /unsupported startup parameter/i.test(error.message);
}

import type pg from "pg";
import { type Address, type ClosingClient, type SessionLimit, urlOf } from "./client.ts";
import { isLoginRefused, tlsError } from "./connection-error.ts";

export interface Pool {
  connect(): Promise<pg.PoolClient>;
  end(): Promise<void>;
  readonly options: object;
}

/**
 * No client gets a connection made with an earlier address: a rotated login may be revoked. A login that is refused while the
 * address changes is tried again with the new one.
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

function isParameterRefused(error: unknown): boolean {
  return error instanceof Error && /unsupported startup parameter/i.test(error.message);
}

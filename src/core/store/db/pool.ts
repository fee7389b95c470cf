import type pg from "pg";
import { type Address, type ClosingClient, urlOf } from "./client.ts";
import { isLoginRefused, tlsError } from "./connection-error.ts";
import { NOTICES_LOSS, type Session, sessionCheck, takeCheck } from "./session.ts";

export interface Pool {
  connect(): Promise<pg.PoolClient>;
  end(): Promise<void>;
  readonly options: object;
}

/**
 * Discards connections made with an earlier address, because a rotated login may be revoked. If a login is refused while the
 * address changes, it is tried again with the new one.
 */
export function currentOf(
  pool: pg.Pool,
  { session, ...of }: { address: Address; variable: string; session: Session },
): Pool {
  const { address } = of;
  const checked = new WeakSet<pg.PoolClient>();
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => {
      for (;;) {
        const url = urlOf(address);
        const { isRefused } = session;
        try {
          const client = await pool.connect();
          if ((client as unknown as ClosingClient).url !== urlOf(address)) {
            client.release(true);
            continue;
          }
          if (!checked.has(client)) await check(client, session);
          checked.add(client);
          return client;
        } catch (error) {
          if (!isRefused && isParameterRefused(error)) {
            session.isRefused = true;
            continue;
          }
          if (!isLoginRefused(error) || urlOf(address) === url) throw tlsError(error, of) ?? error;
        }
      }
    },
  };
}

async function check(client: pg.PoolClient, session: Session): Promise<void> {
  try {
    const { rows } = await client.query(sessionCheck(session));
    takeCheck(session, rows[0]);
  } catch (error) {
    client.release(true);
    throw error;
  }
}

function isParameterRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return /unsupported startup parameter/i.test(error.message) || error.message.includes(NOTICES_LOSS);
}

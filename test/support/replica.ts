import pg from "pg";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { startReplica } from "../../src/service/replica.ts";
import { openStore } from "../../src/store/db/database.ts";
import { createPostgres } from "../chaos/world/servers.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

/** Short, so that a replica falls behind soon. A heartbeat must come several times within it. */
export const MAX_LAG_MS = 3_000;
const EVERY_MS = 200;

/** A Postgres with a streaming replica, and what reads from it. All of it ends with the test. */
export async function setupReplica({ everyMs = EVERY_MS }: { everyMs?: number } = {}) {
  const primary = await createPostgres();
  await primary.start();
  const standby = await createPostgres({ standbyOf: primary });
  await standby.start();
  const logs: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line) => void logs.push(JSON.parse(line)) });
  const store = openStore({ url: primary.url });
  const wire = await startTcpProxy(standby.url);
  const replica = startReplica({
    primary: openStore({ url: primary.url, maxConnections: 1 }),
    replica: openStore({ url: wire.through(standby.url), maxConnections: 4, connectMs: 1_000 }),
    ...{ maxLagMs: MAX_LAG_MS, everyMs, log },
  });
  onTestFinished(async () => {
    await replica.close();
    await store.close();
  });
  /** On the replica itself. */
  const onStandby = async (text: string) => {
    const client = new pg.Client({ connectionString: standby.url });
    client.on("error", () => {});
    await client.connect();
    await client.query(text).finally(() => client.end());
  };
  return {
    ...{ primary, standby, wire, store, replica, logs },
    /** What it gets meanwhile it shows later. */
    pause: () => onStandby("SELECT pg_wal_replay_pause()"),
    resume: () => onStandby("SELECT pg_wal_replay_resume()"),
  };
}

import { chownSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { poll } from "../../support/poll.ts";
import { openRelay } from "../../support/relay.ts";
import { all, type FaultOf, killed, repeatedly } from "../world/fault.ts";
import { createPostgres, fill, type Server, smallDisk } from "../world/servers.ts";
import type { World } from "../world/world.ts";

const TERMINATE =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'usage-etl'";

async function connect({ postgres }: World): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: postgres.url, application_name: "chaos" });
  client.on("error", () => {});
  await client.connect();
  return client;
}

function loseReplies(fate: "cut" | "silent", count: number) {
  return async (world: World) => {
    let left = count;
    for (const worker of all(world)) {
      worker.onCommit = (moment) => (moment === "after" && left-- > 0 ? fate : "pass");
    }
    await poll(() => left <= 0, { deadlineMs: 60_000 });
    return async () => {};
  };
}

let standby: { readonly server: Server; readonly cutOff: () => void } | undefined;
let disk = "";

function fillDisk(world: World): () => Promise<void> {
  const filler = join(disk, "filler");
  const ends = [repeatedly(200, () => fill(filler)), repeatedly(100, () => world.change())];
  return async () => {
    await Promise.all(ends.map((end) => end()));
    rmSync(filler);
  };
}

export const POSTGRES_FAULTS: readonly FaultOf[] = [
  {
    name: "Postgres: killed",
    how: "15 s, within 45 s, short, random",
    begin: ({ postgres }) => killed(postgres),
  },
  {
    name: "Postgres: away for three minutes",
    how: "180 s, within 45 s",
    begin: ({ postgres }) => killed(postgres),
  },
  {
    name: "Postgres: sessions terminated again and again",
    how: "15 s, within 45 s, random",
    begin: async (world) => repeatedly(300, () => world.sql(TERMINATE)),
  },
  {
    name: "Postgres: failover to a standby that has not got all",
    how: "5 s, within 120 s",
    withoutHistory: true,
    options: async () => {
      const primary = await createPostgres();
      await primary.start();
      const wire = await openRelay(primary.port);
      const server = await createPostgres({ standbyOf: { port: wire.port } });
      await server.start();
      standby = {
        server,
        cutOff: () => {
          wire.cut({ newOnes: true });
        },
      };
      return { postgres: primary };
    },
    begin: async (world) => {
      if (standby === undefined) throw new Error("no standby");
      const { server, cutOff } = standby;
      cutOff();
      const { platform } = world;
      const before = platform.requests;
      world.change();
      await poll(() => platform.requests > before + 40, { deadlineMs: 60_000 });
      await world.postgres.kill();
      return async () => {
        world.postgres = server;
        await world.sql("SELECT pg_promote()");
        for (const { postgres } of all(world)) {
          postgres.target = server.port;
          postgres.cut();
        }
      };
    },
  },
  {
    name: "Postgres: replies to COMMIT lost with their connection",
    how: "1 s, within 45 s, short, random",
    begin: loseReplies("cut", 12),
  },
  {
    name: "Postgres: replies to COMMIT lost silently",
    how: "1 s, within 120 s, random",
    begin: loseReplies("silent", 8),
  },
  {
    name: "Postgres: half-open connections",
    how: "1 s, within 120 s, random",
    begin: async (world) => {
      for (const { postgres } of all(world)) postgres.silence();
      return async () => {};
    },
  },
  {
    name: "Postgres: tables locked for 30 s, and deadlocks",
    how: "30 s, within 60 s, random",
    begin: async (world) => {
      const [locker, rival] = await Promise.all([connect(world), connect(world)]);
      // A load that holds the table and wants the view is in a deadlock with it. Postgres may end either.
      const lock = () => locker.query("BEGIN; LOCK TABLE usage.trace_scope IN ACCESS EXCLUSIVE MODE");
      await poll(() =>
        lock().catch(async (error) => {
          await locker.query("ROLLBACK");
          throw error;
        }),
      );
      const stop = repeatedly(200, () =>
        rival
          .query(`BEGIN; SET LOCAL lock_timeout = '3s';
          SELECT FROM usage.trace_scope WHERE scope_id = (SELECT max(scope_id) FROM usage.trace_scope) FOR UPDATE;
          SELECT FROM usage.trace_scope WHERE scope_id = (SELECT min(scope_id) FROM usage.trace_scope) FOR UPDATE; COMMIT`)
          .catch(() => rival.query("ROLLBACK")),
      );
      return async () => {
        await locker.query("COMMIT");
        await stop();
        await Promise.all([locker.end(), rival.end()]);
      };
    },
  },
  {
    name: "Postgres: no connection is free",
    how: "20 s, within 60 s, random",
    begin: async (world) => {
      const held: pg.Client[] = [];
      const admin = await connect(world);
      const stop = repeatedly(50, async () => {
        await admin.query(TERMINATE);
        for (;;) held.push(await connect(world));
      });
      return async () => {
        await stop();
        await Promise.all([admin, ...held].map((client) => client.end()));
      };
    },
  },
  {
    name: "Postgres: disk full",
    how: "30 s, within 60 s",
    named: ["postgres_full"],
    options: async () => {
      disk = smallDisk("64m");
      const postgres = await createPostgres();
      const owner = statSync(join(postgres.dir, "data"));
      chownSync(disk, owner.uid, owner.gid);
      await postgres.start();
      return { postgres };
    },
    begin: async (world) => {
      const client = await connect(world);
      await client.query(`CREATE TABLESPACE small LOCATION '${disk}'`);
      for (const table of "hourly_record dated_record fetch coverage series entity fetch_task".split(" "))
        await client.query(`ALTER TABLE usage.${table} SET TABLESPACE small`);
      await client.end();
      return fillDisk(world);
    },
  },
  {
    name: "Postgres: disk full, with its write-ahead log on it",
    how: "20 s, within 60 s",
    options: async () => {
      disk = smallDisk("400m");
      const postgres = await createPostgres({
        base: disk,
        settings: ["max_wal_size=64MB", "min_wal_size=32MB"],
      });
      await postgres.start();
      return { postgres };
    },
    begin: async (world) => {
      const end = fillDisk(world);
      return async () => {
        await end();
        // Without room for its log it may have ended itself.
        await world.postgres.kill();
        await world.postgres.start();
      };
    },
  },
];

import { sql } from "kysely";
import { CLOCK_TOLERANCE_MS, describeDuration, systemClock } from "../../core/base/clock.ts";
import { faultOf } from "../../core/base/faults.ts";
import { shownUrl } from "../../core/base/url.ts";
import { urlOf } from "../../core/store/db/client.ts";
import type { Store } from "../../core/store/db/database.ts";
import { serverFacts, unsuitable } from "../../core/store/db/server.ts";
import { storeNow, tryWrite } from "../../core/store/work/fetch-ledger.ts";
import { type Notes, problemOf } from "../../terminal/check.ts";
import { requireSchema, type Session } from "../../terminal/session.ts";

const NEED_POSTGRES = ["postgres_write", "schema", "roles", "jit"];

export async function checkPostgres(session: Session, notes: Notes): Promise<Store | undefined> {
  let store: Store;
  try {
    const before = systemClock.now();
    store = await session.store();
    const ms = systemClock.now() - before;
    const facts = await serverFacts(store);
    const fault = unsuitable(store, facts);
    if (fault !== undefined) notes.fail("postgres", fault);
    else notes.pass("postgres", `${facts.version} at ${shownUrl(urlOf(store.address))} answers in ${ms} ms`);
  } catch (error) {
    notes.fail("postgres", problemOf(error));
    for (const check of NEED_POSTGRES) notes.skip(check, "Postgres does not respond.");
    return undefined;
  }
  await tryWrite(store).then(
    () => notes.pass("postgres_write", "takes a write of a megabyte"),
    (error) => notes.fail("postgres_write", faultOf(error) ?? problemOf(error)),
  );
  try {
    await requireSchema(store);
  } catch (error) {
    notes.fail("schema", problemOf(error));
    for (const check of ["roles", "jit"]) notes.skip(check, "The schema cannot be used.");
    return undefined;
  }
  notes.pass("schema", "is up to date");
  await checkRoles(store, notes);
  await checkJit(store, notes);
  return store;
}

/** Only warns, because loads need no reader. A role that is newer than the last migration has no rights. */
async function checkRoles({ db }: Store, notes: Notes): Promise<void> {
  const { hasReaders } = await serverFacts({ db });
  if (!hasReaders) {
    return notes.warn("roles", {
      code: "roles_missing",
      message: "A reader role is missing: usage_reader or usage_reader_masked.",
      next: "Run `usage-etl migrate`. If the role cannot be created, the command prints the SQL for a superuser.",
    });
  }
  const { rows } = await sql<{ mayRead: boolean | null }>`
    select bool_and(has_schema_privilege(r, 'reporting', 'USAGE')
                    and has_table_privilege(r, 'reporting.dim_date', 'SELECT')) as "mayRead"
    from unnest(array['usage_reader', 'usage_reader_masked']::name[]) r
  `.execute(db);
  if (rows[0]?.mayRead === true)
    return notes.pass("roles", "usage_reader and usage_reader_masked read the views");
  notes.warn("roles", {
    code: "roles_without_rights",
    message: "A reader role is not allowed to read the views: usage_reader or usage_reader_masked.",
    next: "Run `usage-etl migrate` to grant the roles their rights.",
  });
}

/**
 * Notes whether JIT is on for logins without their own setting. The database's setting applies, else the server's. If this
 * login's own setting hides the server's, Postgres's default (on) is assumed.
 */
async function checkJit(store: Store, notes: Notes): Promise<void> {
  const found = await store.transaction(async ({ db }) => {
    const { rows } = await sql<{ database: string; isOn: boolean }>`
      select d.datname as database, coalesce(
        (select split_part(c, '=', 2)::boolean from pg_db_role_setting s, unnest(s.setconfig) c
         where s.setdatabase = d.oid and s.setrole = 0 and c like 'jit=%'),
        (select setting::boolean or source not in ('default', 'configuration file', 'command line') from pg_settings where name = 'jit')
      ) as "isOn"
      from pg_database d where d.datname = current_database()
    `.execute(db);
    // `pg_jit_available` returns false in a session with JIT off.
    await sql`set local jit = on`.execute(db);
    const { rows: requested } = await sql<{ exists: boolean }>`select pg_jit_available() as exists`.execute(
      db,
    );
    return rows[0]?.isOn === true && requested[0]?.exists === true ? rows[0] : undefined;
  });
  if (found === undefined) return notes.pass("jit", "is off");
  notes.warn("jit", {
    code: "jit_on",
    message: "JIT is on: Postgres compiles queries over the views, which takes seconds a query.",
    next: `Let an owner of the database run \`ALTER DATABASE "${found.database.replaceAll('"', '""')}" SET jit = off\`.`,
  });
}

/** Only warns, because Postgres's clock decides which days are due and final. */
export async function checkClock(store: Store, notes: Notes): Promise<void> {
  const before = systemClock.now();
  const time = await storeNow(store.db);
  const after = systemClock.now();
  const off = Math.max(before - time, time - after, 0);
  if (off <= CLOCK_TOLERANCE_MS) return notes.pass("clock", "is that of Postgres");
  notes.warn("clock", {
    code: "clock_off",
    message: `The clocks of this host and Postgres differ by ${describeDuration(off)}.`,
    next: "Synchronize the clock by NTP.",
  });
}

import { describeDuration, systemClock } from "../../clock.ts";
import type { Config } from "../../config/config.ts";
import { UsageError } from "../../errors.ts";
import { faultOf } from "../../faults.ts";
import { serverCapabilities } from "../../store/activity/overview.ts";
import type { Store } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { tryWrite } from "../../store/work/try-write.ts";
import { EXIT } from "../session/exit.ts";
import { requireSchema, type Session } from "../session/session.ts";
import { type Notes, problemOf } from "./check.ts";

/** Postgres 15 is the first with MERGE. */
export const OLDEST_POSTGRES = 150_000;
/** The same as between hosts (jobs/holds.ts). */
const CLOCK_TOLERANCE_MS = 2_000;
const NEED_POSTGRES = ["postgres_write", "schema", "roles"];

/** Checks the database. Returns the store if its schema can be read, else undefined. */
export async function checkPostgres(session: Session, notes: Notes): Promise<Store | undefined> {
  let store: Store;
  try {
    const before = systemClock.now();
    store = await session.store();
    const ms = systemClock.now() - before;
    const { version, number } = await serverCapabilities(store.db);
    const at = addressOf(session.config);
    if (number >= OLDEST_POSTGRES) notes.pass("postgres", `${version} at ${at} answers in ${ms} ms`);
    else notes.fail("postgres", tooOld(version, at));
  } catch (error) {
    notes.fail("postgres", problemOf(error));
    for (const check of NEED_POSTGRES) notes.skip(check, "Postgres does not answer.");
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
    notes.skip("roles", "The schema cannot be used.");
    return undefined;
  }
  notes.pass("schema", "is up to date");
  const { hasReaders } = await serverCapabilities(store.db);
  if (hasReaders) notes.pass("roles", "usage_reader and usage_reader_masked exist");
  else notes.fail("roles", ROLES_MISSING, EXIT.usage);
  return store;
}

/** Postgres's clock decides what is due and final; that of this host only what it shows and schedules. */
export async function checkClock(store: Store, notes: Notes): Promise<void> {
  const before = systemClock.now();
  const time = await storeNow(store.db);
  const after = systemClock.now();
  const off = Math.max(before - time, time - after, 0);
  if (off <= CLOCK_TOLERANCE_MS) {
    notes.pass("clock", "is that of Postgres");
    return;
  }
  notes.warn("clock", {
    code: "clock_off",
    message: `The clock of this host is ${describeDuration(off)} off Postgres's.`,
    next: "Set it by NTP.",
  });
}

const ROLES_MISSING = {
  code: "roles_missing",
  message: "A reader role is missing: usage_reader or usage_reader_masked.",
  next: "Run `usage-etl migrate`. It prints the SQL to run.",
};

export function tooOld(version: string, at: string): UsageError {
  return new UsageError({
    code: "postgres_too_old",
    message: `Postgres at ${at} has version ${version}.`,
    next: "Use Postgres 15 or later.",
  });
}

function addressOf({ databaseUrl }: Config): string {
  const { host, pathname } = new URL(databaseUrl?.reveal() ?? "postgres://localhost");
  return `${host}${decodeURIComponent(pathname)}`;
}

import { UsageError } from "../../base/errors.ts";
import { shownUrl } from "../../base/url.ts";
import { urlOf } from "./client.ts";
import type { Store } from "./database.ts";
import { queryOne } from "./query.ts";

/** Postgres 15 is the first with MERGE. */
const OLDEST_POSTGRES = 150_000;

interface ServerFacts {
  readonly version: string;
  readonly number: number;
  readonly hasReaders: boolean;
  readonly encoding: string;
  readonly user: string;
  readonly newDatabase: string;
}

export async function serverFacts({ db }: Pick<Store, "db">): Promise<ServerFacts> {
  return queryOne<ServerFacts>(db)`
    select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
           (select count(*) = 2 from pg_roles where rolname in ('usage_reader', 'usage_reader_masked')) as "hasReaders",
           current_setting('server_encoding') as encoding, quote_ident(current_user) as user,
           quote_ident(left(current_database(), 58) || '_utf8') as "newDatabase"
  `;
}

/** Returns `postgres_too_old` or `postgres_encoding`. Undefined: the database can hold all that the platform sends. */
export function unsuitable({ address, variable }: Store, facts: ServerFacts): UsageError | undefined {
  const at = shownUrl(urlOf(address));
  const { version, number, encoding, user, newDatabase } = facts;
  if (number < OLDEST_POSTGRES)
    return new UsageError({
      code: "postgres_too_old",
      message: `Postgres at ${at} has version ${version}.`,
      next: "Upgrade to Postgres 15 or later.",
    });
  if (encoding === "UTF8") return undefined;
  return new UsageError({
    code: "postgres_encoding",
    message: `The database at ${at} has the encoding ${encoding}, which cannot store all names of the platform. The encoding of a database cannot be changed.`,
    next: `Run: CREATE DATABASE ${newDatabase} OWNER ${user} ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0; then set ${variable} to that database. Use pg_dump and pg_restore to move stored data.`,
  });
}

export async function requireSuitable(store: Store): Promise<void> {
  const fault = unsuitable(store, await serverFacts(store));
  if (fault !== undefined) throw fault;
}

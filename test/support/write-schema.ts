import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import pg from "pg";
import { openStore } from "../../src/core/store/db/database.ts";
import { listViews } from "../../src/core/store/db/views.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { dbtFiles } from "./dbt-sources.ts";
import { dumpSchema, ROOT } from "./schema-dump.ts";
import { SCHEMA_TYPES, schemaTypes } from "./schema-types.ts";
import { resolveTestPostgres } from "./test-postgres.ts";

/** `npm run schema`: writes every file that is made from the migrated database. Read the diff before you commit it. */

const service = await resolveTestPostgres();
const admin = new pg.Client({ connectionString: service.url });
await admin.connect();
const name = `usage_etl_schema_${randomBytes(6).toString("hex")}`;
const url = Object.assign(new URL(service.url), { pathname: `/${name}` }).href;
try {
  await admin.query(`CREATE DATABASE ${name}`);
  const store = openStore({ url });
  await migrate(store);
  const views = await listViews(store.db);
  await store.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  writeFileSync(`${ROOT}sql/schema.sql`, await dumpSchema(client));
  writeFileSync(SCHEMA_TYPES, await schemaTypes(client));
  await client.end();
  for (const [path, text] of dbtFiles(views)) writeFileSync(`${ROOT}docs/dbt/${path}`, text);
} finally {
  await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await admin.end();
  await service.close();
}

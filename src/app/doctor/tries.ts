import { sql } from "kysely";
import { checkRedis } from "../../../jobs/queues.ts";
import type { SourceConfig } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { describeRedis, type RedisServer } from "../../core/base/redis-server.ts";
import { Secret } from "../../core/base/secret.ts";
import { shownUrl } from "../../core/base/url.ts";
import { DAY_MS, floorToGrid } from "../../core/domain/time/stride.ts";
import { billingClientOf } from "../../core/platform/clients.ts";
import { checkReachable, openStore } from "../../core/store/db/database.ts";
import { serverFacts, unsuitable } from "../../core/store/db/server.ts";
import { count } from "../../terminal/output.ts";

/** A try that fails throws instead of returning a finding. */
export interface Finding {
  readonly state: "pass" | "warn";
  readonly finding: string;
}

const pass = (finding: string): Finding => ({ state: "pass", finding });
const warn = (finding: string): Finding => ({ state: "warn", finding });

/** Requests the listing and yesterday's usage, as a sync does. Errors: the client's, and `workspaces_unknown`. */
export async function tryPlatform(
  given: Pick<SourceConfig, "baseUrl" | "organizationId" | "workspaceIds"> & { readonly apiKey: string },
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<Finding[]> {
  const { baseUrl, workspaceIds } = given;
  const client = billingClientOf({
    ...given,
    slug: "default",
    apiKey: new Secret(given.apiKey),
    dataStart: "",
    rateLimit: 1,
  });
  try {
    const listed = await client.workspaces({ signal });
    const readable = listed?.filter((one) => !one.isDeleted).map((one) => one.id) ?? [];
    const requested = workspaceIds.length > 0 ? workspaceIds : readable;
    if (requested.length === 0) throw withoutWorkspaces(baseUrl, listed === undefined);
    const unlisted = listed === undefined ? [] : workspaceIds.filter((id) => !readable.includes(id));
    const organization = await client.organization({ signal });
    const today = floorToGrid(now, DAY_MS);
    const query = {
      start: today - DAY_MS,
      end: today,
      meter: "traces",
      groupBy: "workspace",
      workspaceIds: requested.slice(0, 1),
    } as const;
    let traces = 0;
    const onRecords = (records: readonly { traces: number }[]) => {
      for (const record of records) traces += record.traces;
    };
    await client.usage(query, { signal, onRecords });
    const name = organization?.displayName;
    const of = name == null ? "" : ` of ${name}`;
    return [
      listed === undefined
        ? warn(`${baseUrl} does not list workspaces: USAGE_WORKSPACE_IDS names ${requested.length}`)
        : pass(`${baseUrl} responds: the key reads ${readable.length} workspaces${of}`),
      ...unlisted.map((id) => warn(`workspace ${id} is not in the listing of the key`)),
      pass(`the key reads usage: ${count(traces)} traces yesterday in one workspace`),
    ];
  } finally {
    await client.close();
  }
}

function withoutWorkspaces(baseUrl: string, isWithoutListing: boolean): UsageError {
  return new UsageError({
    code: "workspaces_unknown",
    message: `${baseUrl} ${isWithoutListing ? "has no listing of workspaces" : "lists no workspace for the key"}.`,
    next: "Check the host: it is the billing host, with its path prefix. If it is right, add --set USAGE_WORKSPACE_IDS=UUID,UUID.",
  });
}

/** Errors: `postgres_unreachable`, `postgres_refused`, `postgres_too_old`, `postgres_encoding`, `postgres_no_create`. */
export async function tryPostgres(url: string): Promise<Finding[]> {
  const store = openStore({ url, maxConnections: 1 });
  try {
    await checkReachable(store);
    const facts = await serverFacts(store);
    const fault = unsuitable(store, facts);
    if (fault !== undefined) throw fault;
    const { version, hasReaders, user } = facts;
    const where = shownUrl(url);
    const { rows } = await sql<{ mayCreate: boolean; mayAddRoles: boolean; database: string }>`
      select has_database_privilege(current_database(), 'CREATE') or to_regnamespace('usage') is not null as "mayCreate",
             (select rolcreaterole or rolsuper from pg_roles where rolname = current_user) as "mayAddRoles",
             quote_ident(current_database()) as database
    `.execute(store.db);
    const [rights] = rows;
    if (rights?.mayCreate !== true) {
      throw new UsageError({
        code: "postgres_no_create",
        message: `The user ${user} may not create schemas in the database of ${where}.`,
        next: `Let an owner of the database run: GRANT CREATE ON DATABASE ${rights?.database} TO ${user};`,
      });
    }
    const findings = [pass(`version ${version} at ${where}; the user may create the schema`)];
    if (!hasReaders && !rights.mayAddRoles)
      findings.push(
        warn("the user may not create roles: `usage-etl migrate` prints two lines for a superuser"),
      );
    return findings;
  } finally {
    await store.close();
  }
}

/** Errors: `redis_unreachable`, `redis_evicts`. */
export async function tryRedis(redis: RedisServer): Promise<Finding[]> {
  const warnings = await checkRedis(redis);
  return [pass(`${describeRedis(redis)} responds and keeps its keys`), ...warnings.map(warn)];
}

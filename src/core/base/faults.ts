import { EtlError, UnreachableError } from "./errors.ts";

/** Errors of Postgres and the drivers by meaning. The first match applies. */
const FAULTS: readonly { code: string; by: RegExp; next: string; passes?: boolean }[] = [
  { code: "postgres_full", by: /^53100$/, next: "Free space on Postgres's disk." },
  {
    code: "postgres_read_only",
    by: /^25006$/,
    next: "Check whether Postgres failed over. If not, turn off default_transaction_read_only with ALTER ROLE or ALTER DATABASE ... RESET.",
  },
  {
    code: "postgres_overloaded",
    by: /^5[38]\w{3}$/,
    next: "Check Postgres's log for a lack of connections, memory or disk.",
  },
  {
    code: "postgres_busy",
    by: /^(40001|40P01|55P03)$/,
    next: "If the error stays, check which session holds locks in Postgres.",
  },
  {
    code: "postgres_login_refused",
    by: /^28\w{3}$/,
    next: "Check user and password in DATABASE_URL. A file of DATABASE_URL_FILE is read again for each connection.",
  },
  { code: "postgres_slow", by: /^57014$/, next: "Check what keeps Postgres busy.", passes: false },
  {
    code: "postgres_unreachable",
    by: /^(08\w{3}|57P0\d|ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$|connection terminated|not queryable|timeout exceeded when trying to connect|query read timeout/i,
    next: "See whether it runs.",
  },
  {
    code: "redis_refused",
    by: /^(WRONGPASS|NOAUTH|NOPERM)/,
    next: "Correct REDIS_URL or REDIS_PASSWORD. Their files are read again for each login.",
  },
  { code: "redis_read_only", by: /^READONLY/, next: "Check whether Redis failed over." },
  { code: "redis_full", by: /^(OOM|MISCONF)/, next: "Give Redis more memory or disk space." },
  {
    code: "redis_unreachable",
    by: /^(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|Too many Cluster redirections|None of startup nodes|Failed to refresh slots|Cluster isn't ready)|sentinels are unreachable|connection is closed|command timed out|stream isn't writeable|max retries per request/i,
    next: "See whether it runs.",
  },
];

/** While one of these lasts, Postgres stores nothing, so a response of the platform would be lost. */
const STOPS_WRITES = new Set([
  "postgres_full",
  "postgres_read_only",
  "postgres_overloaded",
  "postgres_silent",
  "postgres_login_refused",
  "postgres_tls",
  "postgres_unreachable",
]);

/** Undefined for an error that is no known fault of a server. */
export function faultOf(error: unknown): EtlError | undefined {
  if (error instanceof EtlError || !(error instanceof Error))
    return error instanceof EtlError ? error : undefined;
  // A refused connection to a name with several addresses has only a code.
  const { code: state = "" } = error as { code?: unknown };
  const fault = FAULTS.find(({ by }) => by.test(String(state)) || by.test(error.message));
  if (fault === undefined) return undefined;
  const { code, next, passes = true } = fault;
  const server = code.startsWith("redis") ? "Redis" : "Postgres";
  const facts = {
    code,
    message: `${server}: ${error.message || state}`,
    next,
    retryable: passes,
    cause: error,
  };
  return stopsWrites(code) ? new UnreachableError(facts) : new EtlError(facts);
}

export function stopsWrites(code: string): boolean {
  return STOPS_WRITES.has(code);
}

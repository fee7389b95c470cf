/** Settings of every local Postgres. The log goes to a file in the server's folder. */
export const COMMON_SETTINGS: readonly string[] = [
  "max_connections=100",
  "shared_buffers=256MB",
  "listen_addresses=127.0.0.1",
  // No socket file: its folder (/tmp or /run) may hold the one of another server.
  "unix_socket_directories=",
];

/**
 * Settings of a temporary server. Its data need not be durable. Its time zone has an odd offset and daylight saving time,
 * so that the tests prove that nothing depends on the server's zone.
 */
export const TEST_SETTINGS: readonly string[] = [
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
  "timezone=America/St_Johns",
  // Tests leave hundreds of databases behind, and it would start a process for each of them every minute.
  "autovacuum_naptime=1h",
  // Several services at once, each with a pool of 10.
  "max_connections=200",
];

const UTF8 = ["--encoding=UTF8", "--locale=C"];

/** Options that give the same cluster on every system, whatever locales it has. */
export const CLUSTER_OPTIONS = [...UTF8, "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];

/** Text sorts as in English, so that the tests prove that nothing needs Postgres and JavaScript to sort alike. */
export const TEST_CLUSTER_OPTIONS = [...UTF8, "--locale-provider=icu", "--icu-locale=en-US"];

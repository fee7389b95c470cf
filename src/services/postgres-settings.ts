/** How our own Postgres servers are made and run. */

/** For every server of ours. The log goes to a file in the server's folder. */
export const COMMON_SETTINGS: readonly string[] = [
  "max_connections=100",
  "shared_buffers=256MB",
  "listen_addresses=127.0.0.1",
  // No socket file: its folder (/tmp or /run) may hold one of another server.
  "unix_socket_directories=",
];

/**
 * For a server whose data is thrown away. Nothing is made durable, and the time zone is one with an odd offset and
 * daylight saving: what works here does not depend on the server's zone.
 */
export const TEST_SETTINGS: readonly string[] = [
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
  "timezone=America/St_Johns",
  // Several services at once, each with a pool of 10.
  "max_connections=200",
];

/** The same on every system, whatever locales it has. */
export const CLUSTER_OPTIONS: readonly string[] = [
  "--encoding=UTF8",
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
];

/**
 * Text sorts as in English, as on most people's servers: what works here does not depend on Postgres and JavaScript
 * sorting alike.
 */
export const TEST_CLUSTER_OPTIONS: readonly string[] = [
  "--encoding=UTF8",
  "--locale=C",
  "--locale-provider=icu",
  "--icu-locale=en-US",
];

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

export interface RedisServer {
  readonly kind: "single" | "cluster" | "sentinel";
  /** The one server, nodes of the cluster to contact first, or the Sentinels. */
  readonly hosts: readonly RedisHost[];
  /** The primary's name at the Sentinels; empty for other kinds. */
  readonly primary: string;
  readonly database: number;
  /** Other options of the URL, such as `family`. */
  readonly options: Readonly<Record<string, string | number>>;
  /** Begins all our keys. Its braces are a hash tag: all keys share one slot of a cluster. */
  readonly prefix: string;
  /**
   * A function, so that no log or page shows the result. It reads secrets in files anew: call it for each login. Undefined
   * `tls`: not encrypted.
   */
  readonly access: () => RedisAccess;
}

interface RedisAccess {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  /** `ca`: certificates in PEM form, trusted instead of the system's. */
  readonly tls?: { readonly ca?: string } | undefined;
}

export interface RedisGiven {
  readonly url?: string | undefined;
  /** Without braces. */
  readonly prefix?: string;
  /** Replaces the password of the URL. */
  readonly password?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  readonly ca?: string | undefined;
}

const PORT = 6379;
const SENTINEL_PORT = 26_379;

/** `now` returns the current settings: only logins may change. */
export function redisServerOf(given: RedisGiven, now: () => RedisGiven = () => given): RedisServer {
  const { prefix = "usage-etl", ca } = given;
  const url = given.url === undefined ? undefined : parseRedisUrl(given.url);
  const { sentinelUsername, ...options } = url?.options ?? {};
  return {
    kind: url?.kind ?? "single",
    hosts: url?.hosts ?? [],
    primary: url?.primary ?? "",
    database: url?.database ?? 0,
    options,
    prefix: `{${prefix}}`,
    access: () => {
      const latest = now();
      const { username, password } = latest.url === undefined ? {} : parseRedisUrl(latest.url);
      return {
        username: username || undefined,
        password: latest.password ?? (password || undefined),
        sentinelUsername: sentinelUsername?.toString(),
        sentinelPassword: latest.sentinelPassword,
        tls: url?.isEncrypted ? (ca === undefined ? {} : { ca }) : undefined,
      };
    },
  };
}

/**
 * Reads `redis://user:password@host:6379/0`, with `rediss` for TLS. Several hosts, comma-separated (each may be a whole URL),
 * or `redis+cluster://` with one address mean a cluster. `redis+sentinel://user:password@host:26379,host2/mymaster/0` names
 * Sentinels and their primary. Throws a `TypeError` for anything else.
 */
export function parseRedisUrl(text: string) {
  const [first = "", ...others] = text.split(/,(?=rediss?:\/\/)/);
  const [, scheme = "", kind, login = "", authority = "", rest = ""] =
    /^(rediss?)(?:\+(cluster|sentinel))?:\/\/(.*@)?([^/?#]*)(.*)$/.exec(first) ?? [];
  const [host = "", ...more] = authority.split(",");
  const url = new URL(`${scheme}://${login}${host}${rest}`);
  const port = kind === "sentinel" ? SENTINEL_PORT : PORT;
  const hosts = [
    hostOf(url, port),
    ...more.map((one) => hostOf(new URL(`${scheme}://${one}`), port)),
    ...others.map((one) => hostOf(new URL(one), port)),
  ];
  const path = url.pathname.split("/").slice(1);
  const primary = kind === "sentinel" ? decodeURIComponent(path.shift() || "mymaster") : "";
  const database = Number(path.join("/") || 0);
  if (!Number.isInteger(database)) throw new TypeError(`not a number of a database: ${path.join("/")}`);
  const options = [...url.searchParams].map(([name, value]) => {
    return [name, name === "family" ? Number.parseInt(value, 10) : value] as const;
  });
  return {
    kind: kindOf(kind, hosts),
    isEncrypted: scheme === "rediss",
    hosts,
    primary,
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database,
    options: Object.fromEntries(options),
  };
}

function kindOf(named: string | undefined, hosts: readonly RedisHost[]): RedisServer["kind"] {
  if (named === "sentinel") return "sentinel";
  return named === "cluster" || hosts.length > 1 ? "cluster" : "single";
}

function hostOf({ hostname, port }: URL, byDefault: number): RedisHost {
  if (hostname === "") throw new TypeError("no host");
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || byDefault) };
}

/** `Redis at host:6379`, `The Redis cluster of ...`, `Redis "mymaster" of the Sentinels ...`. */
export function describeRedis({ kind, hosts, primary }: RedisServer): string {
  const named = hosts
    .map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`)
    .join(", ");
  if (kind === "single") return `Redis at ${named}`;
  return kind === "cluster"
    ? `The Redis cluster of ${named}`
    : `Redis "${primary}" of the Sentinels ${named}`;
}

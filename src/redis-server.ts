/** A host of Redis or of a Sentinel. */
export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

/** Where Redis is and how it is reached: one server, a cluster, or the primary that Sentinels name. */
export interface RedisServer {
  readonly kind: "single" | "cluster" | "sentinel";
  /** The one server, nodes of the cluster to ask first, or the Sentinels. */
  readonly hosts: readonly RedisHost[];
  /** Of the primary, by which Sentinels know it. */
  readonly primary: string;
  readonly database: number;
  /** Other options of the URL, such as `family`. */
  readonly options: Readonly<Record<string, string | number>>;
  /** All our keys begin with it. Its braces are a hash tag: all of them share one slot of a cluster. */
  readonly prefix: string;
  /**
   * A function, so that no log and no page shows what it returns. Secrets in files are read for each call: ask anew for each
   * login. Undefined `tls`: not encrypted.
   */
  readonly access: () => RedisAccess;
}

interface RedisAccess {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  /** `ca`: certificates in PEM form that are trusted in place of the system's. */
  readonly tls?: { readonly ca?: string } | undefined;
}

/** The settings as they were given. */
export interface RedisGiven {
  readonly url?: string | undefined;
  readonly isCluster?: boolean | undefined;
  readonly sentinels?: readonly RedisHost[];
  readonly primary?: string;
  /** Without braces. */
  readonly prefix?: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  readonly isEncrypted?: boolean | undefined;
  readonly ca?: string | undefined;
}

const PORT = 6379;

/**
 * Several hosts make a cluster. A user and a password of their own go before those of the URL. `now` gives the settings as
 * they are at present: only logins may change.
 */
export function redisServerOf(given: RedisGiven, now: () => RedisGiven = () => given): RedisServer {
  const { sentinels = [], primary = "mymaster", prefix = "usage-etl", isCluster, ca } = given;
  const url = given.url === undefined ? undefined : parseRedisUrl(given.url);
  const isEncrypted = given.isEncrypted ?? url?.isEncrypted ?? ca !== undefined;
  const hosts = sentinels.length > 0 ? sentinels : (url?.hosts ?? []);
  const inCluster = isCluster ?? hosts.length > 1;
  return {
    kind: sentinels.length > 0 ? "sentinel" : inCluster ? "cluster" : "single",
    hosts,
    primary,
    database: url?.database ?? 0,
    options: url?.options ?? {},
    prefix: `{${prefix}}`,
    access: () => {
      const latest = now();
      const { username, password } = latest.url === undefined ? {} : parseRedisUrl(latest.url);
      return {
        username: latest.username ?? (username || undefined),
        password: latest.password ?? (password || undefined),
        sentinelUsername: latest.sentinelUsername,
        sentinelPassword: latest.sentinelPassword,
        tls: isEncrypted ? (ca === undefined ? {} : { ca }) : undefined,
      };
    },
  };
}

/**
 * Reads `redis://user:password@host:6379,host2:6380/0`, and the same with a whole URL for each host. Throws a `TypeError` for
 * anything else.
 */
export function parseRedisUrl(text: string) {
  const [first = "", ...others] = text.split(/,(?=rediss?:\/\/)/);
  const [, scheme = "", login = "", authority = "", rest = ""] =
    /^(rediss?):\/\/(.*@)?([^/?#]*)(.*)$/.exec(first) ?? [];
  const [host = "", ...more] = authority.split(",");
  const url = new URL(`${scheme}://${login}${host}${rest}`);
  const hosts = [
    hostOf(url),
    ...more.map((one) => hostOf(new URL(`${scheme}://${one}`))),
    ...others.map((one) => hostOf(new URL(one))),
  ];
  const options = [...url.searchParams].map(([name, value]) => {
    return [name, name === "family" ? Number.parseInt(value, 10) : value] as const;
  });
  return {
    isEncrypted: scheme === "rediss",
    hosts,
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: Number(url.pathname.slice(1) || 0),
    options: Object.fromEntries(options),
  };
}

/** An address without a scheme, such as `10.0.0.1:26379`. Throws a `TypeError` for anything else. */
export function parseHost(text: string, port = PORT): RedisHost {
  const url = new URL(`redis://${text}`);
  if (url.username !== "" || url.pathname.length > 1) throw new TypeError(`not a host: ${url.host}`);
  return hostOf(url, port);
}

function hostOf({ hostname, port }: URL, byDefault = PORT): RedisHost {
  if (hostname === "") throw new TypeError("no host");
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || byDefault) };
}

/** For messages: `Redis at host:6379`, `The Redis cluster of ...`, `Redis "mymaster" of the Sentinels ...`. */
export function describeRedis({ kind, hosts, primary }: RedisServer): string {
  const named = hosts
    .map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`)
    .join(", ");
  if (kind === "single") return `Redis at ${named}`;
  return kind === "cluster"
    ? `The Redis cluster of ${named}`
    : `Redis "${primary}" of the Sentinels ${named}`;
}

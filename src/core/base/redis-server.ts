import { isCut, NOT_ENCODED } from "./url.ts";

interface RedisHost {
  readonly host: string;
  readonly port: number;
}

export interface RedisServer {
  readonly kind: "single" | "cluster" | "sentinel";
  readonly hosts: readonly RedisHost[];
  /** The primary's name at the Sentinels; empty for other kinds. */
  readonly primary: string;
  readonly database: number;
  /** IP version of all connections; undefined: any. */
  readonly family: 4 | 6 | undefined;
  /** Prefix of all our keys. Its braces are a hash tag: all keys share one slot of a cluster. */
  readonly prefix: string;
  /**
   * A function, so that no log or page shows the login. Call it for each login, because it reads files again. Undefined `tls`:
   * not encrypted.
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

interface RedisGiven {
  readonly url?: string | undefined;
  /** Without braces. */
  readonly prefix?: string;
  readonly password?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  readonly ca?: string | undefined;
}

const PORT = 6379;
const SENTINEL_PORT = 26_379;

/** `now` returns the current settings, of which only logins may differ. */
export function redisServerOf(given: RedisGiven, now: () => RedisGiven = () => given): RedisServer {
  const { prefix = "usage-etl", ca } = given;
  const url = given.url === undefined ? undefined : parseRedisUrl(given.url);
  return {
    kind: url?.kind ?? "single",
    hosts: url?.hosts ?? [],
    primary: url?.primary ?? "",
    database: url?.database ?? 0,
    family: url?.family,
    prefix: `{${prefix}}`,
    access: () => {
      const latest = now();
      const { username, password } = latest.url === undefined ? {} : parseRedisUrl(latest.url);
      return {
        username: username || undefined,
        password: latest.password ?? (password || undefined),
        sentinelUsername: url?.sentinelUsername,
        sentinelPassword: latest.sentinelPassword,
        tls: url?.isEncrypted ? (ca === undefined ? {} : { ca }) : undefined,
      };
    },
  };
}

/** Parameters of the URL, each with the kinds that may have it. */
const PARAMETERS: Readonly<Record<string, RegExp>> = {
  family: /^(single|cluster|sentinel)$/,
  sentinelUsername: /^sentinel$/,
};

/** Parameters of other clients that it is not enough to remove. */
const INSTEAD: readonly (readonly [RegExp, string])[] = [
  [
    /reject|ssl|tls|verif|cert|secur/i,
    "for TLS begin the URL with rediss, and name an authority that is not public in REDIS_CA_FILE",
  ],
  [/^(db|database)$/i, "write the number of the database as the path, as in redis://host:6379/3"],
];

/** Returns why a text is no address of Redis, without any part that may be a password. */
export function redisUrlProblem(text: string): string | undefined {
  // If each host has a login, an `@` within a password looks like the end of a login.
  if (urlsIn(text).some((url) => isCut(url) || /@[^/]*,[^/]*@/.test(url))) return NOT_ENCODED;
  try {
    const { kind, parameters } = parseRedisUrl(text);
    const names = [...parameters.keys()];
    if (names.some((name) => /pass/i.test(name)))
      return "has a password as a parameter: set REDIS_PASSWORD or REDIS_SENTINEL_PASSWORD";
    const other = names.find((name) => PARAMETERS[name]?.test(kind) !== true);
    if (other !== undefined) {
      const instead = INSTEAD.find(([by]) => by.test(other))?.[1] ?? "remove it";
      return `has a parameter ${JSON.stringify(other)}, which would have no effect: ${instead}. Known are family, and sentinelUsername for Sentinels`;
    }
    const families = parameters.getAll("family");
    return families.every((family) => /^[46]$/.test(family)) ? undefined : "has a family other than 4 or 6";
  } catch {
    return "is not of the form redis://host:6379 or redis+sentinel://host:26379/mymaster";
  }
}

function urlsIn(text: string): string[] {
  return text.split(/,(?=rediss?:\/\/)/);
}

/**
 * Reads `redis://user:password@host:6379/0`, with `rediss` for TLS. Several hosts, comma-separated (each may be a whole
 * URL), or `redis+cluster://` mean a cluster. `redis+sentinel://user:password@host:26379,host2/mymaster/0` names Sentinels
 * and their primary. Other text throws an error that may show it.
 */
function parseRedisUrl(text: string) {
  const [first = "", ...others] = urlsIn(text);
  const [, scheme = "", kind, login = "", authority = "", rest = ""] =
    /^(rediss?)(?:\+(cluster|sentinel))?:\/\/([^/?#]*@)?([^/?#]*)(.*)$/.exec(first) ?? [];
  const [host = "", ...more] = authority.split(",");
  const url = new URL(`${scheme}://${login}${host}${rest}`);
  const port = kind === "sentinel" ? SENTINEL_PORT : PORT;
  const hosts = [
    hostOf(url, port),
    ...more.map((one) => hostOf(new URL(`${scheme}://${one}`), port)),
    ...others.map((one) => hostOf(sameBut(url, new URL(one)), port)),
  ];
  const path = url.pathname.split("/").slice(1);
  const primary = kind === "sentinel" ? decodeURIComponent(path.shift() || "mymaster") : "";
  const database = path.join("/");
  if (!/^\d*$/.test(database)) throw new TypeError("not a number of a database");
  const parameters = url.searchParams;
  return {
    kind: kindOf(kind, hosts),
    isEncrypted: scheme === "rediss",
    hosts,
    primary,
    username: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: Number(database),
    family: parameters.has("family") ? (Number(parameters.get("family")) as 4 | 6) : undefined,
    sentinelUsername: parameters.get("sentinelUsername") ?? undefined,
    parameters,
  };
}

/** Refuses a further host with its own login, scheme or parameters, which would not be used. */
function sameBut(first: URL, other: URL): URL {
  const login = ({ username, password }: URL) => `${username}:${password}`;
  const isSame = other.protocol === first.protocol && [":", login(first)].includes(login(other));
  if (isSame && /^\/?$/.test(other.pathname) && other.search === "") return other;
  throw new TypeError("not the same server");
}

function kindOf(named: string | undefined, hosts: readonly RedisHost[]): RedisServer["kind"] {
  if (named === "sentinel") return "sentinel";
  return named === "cluster" || hosts.length > 1 ? "cluster" : "single";
}

function hostOf({ hostname, port }: URL, byDefault: number): RedisHost {
  if (hostname === "") throw new TypeError("no host");
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || byDefault) };
}

export function describeRedis({ kind, hosts, primary }: RedisServer): string {
  const named = hosts
    .map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`)
    .join(", ");
  if (kind === "single") return `Redis at ${named}`;
  return kind === "cluster"
    ? `The Redis cluster of ${named}`
    : `Redis "${primary}" of the Sentinels ${named}`;
}

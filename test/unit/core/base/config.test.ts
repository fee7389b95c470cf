import { rmSync, writeFileSync } from "node:fs";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
  configurationDigest,
  readConfig,
  requireDatabaseUrl,
  secretFilesOf,
} from "../../../../src/core/base/config.ts";
import { UsageError } from "../../../../src/core/base/errors.ts";
import { temporaryFile } from "../../../support/temporary.ts";

const KEY = "lsv2_sk_do_not_show";
const ID = "11111111-2222-3333-4444-555555555555";
const SOURCE = { USAGE_BASE_URL: "https://api.example.com", USAGE_API_KEY: KEY };

function problemsOf(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    expect(error.code).toBe("configuration_invalid");
    const [head, ...lines] = error.message.split("\n  ");
    expect(head).toBe(`The configuration has ${lines.length} problem${lines.length > 1 ? "s" : ""}:`);
    return lines;
  }
  throw new Error("the environment was accepted");
}

test("hours are kept forever by default, and never shorter than they are loaded", () => {
  expect(readConfig(SOURCE)).toMatchObject({ hourlyKeepMs: undefined });
  expect(readConfig({ ...SOURCE, USAGE_HOURLY_KEEP: "P31D" })).toMatchObject({
    hourlyKeepMs: 31 * 86_400_000,
  });
  expect(problemsOf({ ...SOURCE, USAGE_HOURLY_KEEP: "P30D" })).toEqual([
    "USAGE_HOURLY_KEEP is P30D, less than USAGE_HOURLY_FOR (P31D by default)",
  ]);
  expect(problemsOf({ ...SOURCE, USAGE_HOURLY_KEEP: "P40D", USAGE_HOURLY_FOR: "P60D" })).toEqual([
    "USAGE_HOURLY_KEEP is P40D, less than USAGE_HOURLY_FOR (P60D)",
  ]);
});

test("trusted proxies are addresses and networks, but not everybody, and the header of a person needs them", () => {
  const read = (USAGE_WEB_TRUSTED_PROXIES: string) => readConfig({ ...SOURCE, USAGE_WEB_TRUSTED_PROXIES });
  expect(read("").webTrustedProxies).toEqual([]);
  const good = ["10.0.0.7", "192.168.0.0/16", "::1", "fd00::/8"];
  expect(read(good.join(" , ")).webTrustedProxies).toEqual(good);
  for (const bad of "nginx 10.0.0.7:80 10.0.0.0/33 10.0.0.0/0 ::/0 10.0.0.0/ 10.0.0.0/+8 *".split(" ")) {
    const [problem, ...more] = problemsOf({ ...SOURCE, USAGE_WEB_TRUSTED_PROXIES: `127.0.0.1,${bad}` });
    expect([bad, more, problem]).toEqual([
      bad,
      [],
      expect.stringContaining("USAGE_WEB_TRUSTED_PROXIES: entry 2 "),
    ]);
  }
  expect(problemsOf({ ...SOURCE, USAGE_WEB_USER_HEADER: "X-User" })).toEqual([
    expect.stringMatching(/^USAGE_WEB_USER_HEADER .*USAGE_WEB_TRUSTED_PROXIES/),
  ]);
});

describe("readConfig refuses", () => {
  test("all problems together, each with its name", () => {
    const wrong = {
      USAGE_BASE_URL: "api.example.com",
      USAGE_SETTLE_AFTR: "P1D",
      USAGE_SETTLE_AFTER: "3 days",
      USAGE_WORKSPACE_IDS: `${ID},abc`,
      USAGE_DATA_START: "2026-02-30",
      USAGE_RATE_LIMIT: "0",
      USAGE_USER_EMAIL: "hide",
      USAGE_LOG_LEVEL: "loud",
    };
    const problems = problemsOf({ ...wrong, USAGE_API_KEY: KEY });
    expect(problems.map((one) => /^\w+/.exec(one)?.[0]).sort()).toEqual(Object.keys(wrong).sort());
    const said = (text: string) => expect(problems.join("\n")).toContain(text);
    said("USAGE_SETTLE_AFTR is not a setting; did you mean USAGE_SETTLE_AFTER?");
    // Not the value, which may be a key that was pasted in the wrong place.
    said("USAGE_WORKSPACE_IDS: entry 2 is not a UUID");
    expect(problems.join()).not.toContain("abc");
  });

  test.each(["DATABASE_URL", "REDIS_URL", "USAGE_API_KEY", "USAGE_BEARER_TOKEN", "USAGE_ROUTE_A"])(
    "%s if its file is set too",
    (name) => {
      const value = name === "REDIS_URL" ? "redis://x" : "postgres://x";
      expect(problemsOf({ [name]: value, [`${name}_FILE`]: temporaryFile(value) })).toEqual([
        `${name} and ${name}_FILE are both set; keep one`,
      ]);
    },
  );

  test("a secret file that is missing or empty", () => {
    const empty = temporaryFile("\n");
    expect(problemsOf({ DATABASE_URL_FILE: empty, USAGE_API_KEY_FILE: "/nowhere/key" })).toEqual([
      `DATABASE_URL_FILE ${empty} is empty`,
      expect.stringMatching(/^USAGE_API_KEY_FILE \/nowhere\/key cannot be read: ENOENT/),
    ]);
  });

  test.each([
    ["REDIS_URL", "redis+sentinel://cache/usage?sentinelPassword=hunter2", "password"],
    ["DATABASE_URL", "postgres://me@host/usage?password=hunter2", "password"],
    ["REDIS_URL", "redis://cache?db=3", '"db"'],
    ["REDIS_URL", "redis://cache?sentinelUsername=me", '"sentinelUsername"'],
    ["REDIS_URL", "redis://cache?family=5", "family"],
    ["REDIS_URL", "rediss://cache?rejectUnauthorized=false", '"rejectUnauthorized".*REDIS_CA_FILE'],
    ["REDIS_URL", "rediss://:hunter2@cache:1?ssl_cert_reqs=none", '"ssl_cert_reqs".*REDIS_CA_FILE'],
    ["DATABASE_URL", "postgres://host/usage?pgbouncer=true&connection_limit=1", '"pgbouncer".*: remove it'],
    ["DATABASE_URL", "postgres://host/usage?sslmode=require&connect_timeout=15", '"connect_timeout".*limits'],
    ["DATABASE_URL", "postgres://host/usage?statement_timeout=5000", '"statement_timeout".*limits'],
    ["DATABASE_URL", "postgres://host/?dbname=usage", '"dbname".*after the host'],
    [
      "DATABASE_URL",
      "postgres://host/usage?target_session_attrs=read-write",
      '"target_session_attrs".*primary',
    ],
    ["DATABASE_URL", "postgres://host/usage?binary=true", '"binary".*: remove it'],
    ["DATABASE_URL", "postgres://host/usage?sslMode=require", '"sslMode".*: remove it'],
    ["DATABASE_URL", "postgres://host/usage?sslcrl=/crl.pem", '"sslcrl".*: remove it'],
    ["DATABASE_URL", "postgres://host/usage?__proto__=x", '"__proto__".*: remove it'],
    ["DATABASE_URL", "postgres://host/usage?sslmode=disabled", '"sslmode".*: use disable, prefer'],
    ["DATABASE_URL", "postgres://host/usage?ssl=false", '"ssl".*: use true, 1'],
    ["DATABASE_URL", "postgres://host/usage?client_encoding=LATIN1", '"client_encoding".*: use utf8'],
    ["DATABASE_URL", "postgres://host/usage?sslmode=disable&sslmode=require", '"sslmode" twice'],
    ["DATABASE_URL", "postgres://host/usage?sslmode=require&sslrootcert=system", "sslmode=verify-full"],
  ])("a parameter that would not be used: %s=%s", (name, value, what) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^${name} has .*${what}`))]);
    expect(problems.join()).not.toContain("hunter2");
  });

  test.each([
    ["DATABASE_URL", "localhost/usage"],
    ["DATABASE_URL", "mysql://me:hunter2@host/usage"],
    ["REDIS_URL", "cache:6379"],
    ["REDIS_URL", "redis://cache:6379/mymaster"],
    ["REDIS_URL", "redis+sentinel:///mymaster"],
    ["REDIS_URL", "redis+ring://cache"],
    ["REDIS_URL", "redis://:hunter2@a,redis://:hunter3@b"],
    ["REDIS_URL", "redis://a,rediss://b"],
  ])("%s=%j without repeating it", (name, value) => {
    const [problem, ...more] = problemsOf({ [name]: value });
    expect(problem).toMatch(new RegExp(`^${name} is not of the form \\w+://`));
    expect(`${problem}`).not.toContain(value);
    expect(more).toEqual([]);
  });

  test.each([
    ["USAGE_HOURLY_FOR", "P99999999Y", "must be 100 years or less"],
    ["USAGE_SETTLE_AFTER", "-P3D", "is not an ISO 8601 duration such as P3D or PT15M"],
    ["USAGE_SYNC_EVERY", "P32D", "must be a second to 31 days"],
    ["USAGE_DATA_START", "1969-12-31", "must be between 1970-01-01 and 2100-01-01"],
    ["USAGE_RATE_LIMIT", "1000001", "must be 1000000 or less"],
    ["HTTP_PORT", "99999", "must be 0 to 65535"],
    ["USAGE_ORGANIZATION_ID", "org\nx: y", "has a space, a line end or a character beyond ASCII"],
    ["USAGE_ORGANIZATION_ID", "\u043a", "has a space, a line end or a character beyond ASCII"],
  ])("%s=%j", (name, text, problem) => {
    expect(problemsOf({ ...SOURCE, [name]: text })[0]).toBe(`${name} ${problem}`);
  });

  test.each([
    ["USAGE_HOURLY_FOR", "P100Y"],
    ["USAGE_SYNC_EVERY", "P31D"],
    ["USAGE_DATA_START", "1970-01-01"],
    ["HTTP_PORT", "65535"],
    ["USAGE_BASE_URL", "HTTPS://API.example.com"],
    ["USAGE_ORGANIZATION_ID", "11111111-2222-3333-4444-555555555555"],
  ])("but not %s=%j", (name, text) => {
    expect(() => readConfig({ ...SOURCE, [name]: text })).not.toThrow();
  });
});

test.each([
  "postgresql://me:hunter2@ep-a-b.aws.neon.tech/neondb?sslmode=require&channel_binding=require",
  "postgres://me:hunter2@host/usage?options=endpoint%3Dep-a-b&application_name=billing",
  "postgres://me:hunter2@host:6432/usage?sslmode=verify-full&sslrootcert=system",
  "postgres://me:hunter2@host/usage?sslrootcert=system&sslnegotiation=direct",
  "postgres://host/usage?ssl=true&client_encoding=UTF8",
  "postgres:///usage?host=/cloudsql/project:region:name",
])("an address with parameters that have an effect is taken: %s", (url) => {
  expect(readConfig({ DATABASE_URL: url }).databaseUrl?.reveal()).toBe(url);
});

test("blanks and line ends around a value of the environment do not count", () => {
  const given = {
    ...SOURCE,
    DATABASE_URL: "postgres://me:one@host/db\n",
    USAGE_API_KEY: ` ${KEY}\r\n`,
    USAGE_SYNC_EVERY: "PT5M ",
  };
  const { databaseUrl, sources, syncEveryMs } = readConfig(given);
  expect([databaseUrl?.reveal(), sources[0]?.apiKey.reveal(), syncEveryMs]).toEqual([
    "postgres://me:one@host/db",
    KEY,
    300_000,
  ]);
});

describe("secrets", () => {
  test("are read from files without the line end and shown nowhere", () => {
    const config = readConfig({
      USAGE_BASE_URL: "https://api.example.com",
      USAGE_API_KEY_FILE: temporaryFile(`${KEY}\n`),
      DATABASE_URL_FILE: temporaryFile("postgres://me:hunter2@host/db\r\n"),
    });
    expect(config.sources[0]?.apiKey.reveal()).toBe(KEY);
    expect(requireDatabaseUrl(config).reveal()).toBe("postgres://me:hunter2@host/db");
    for (const shown of [JSON.stringify(config), inspect(config, { depth: 9 }), `${config.databaseUrl}`]) {
      expect(shown).not.toContain(KEY);
      expect(shown).not.toContain("hunter2");
    }
  });

  test("are read again for each use, and keep their last value while the file has none that fits", () => {
    const path = temporaryFile("postgres://me:one@host/db");
    const { databaseUrl } = readConfig({ DATABASE_URL_FILE: path });
    if (databaseUrl === undefined) throw new Error("no address");
    const of = (content: string) => {
      writeFileSync(path, content);
      return [databaseUrl.reveal(), databaseUrl.problem()];
    };
    expect(of("postgres://me:two@host/db\n")).toEqual(["postgres://me:two@host/db", undefined]);
    for (const [content, problem] of [
      ["", `DATABASE_URL_FILE ${path} is empty`],
      ["hunter3", expect.stringMatching(/^DATABASE_URL is not of the form (?!.*hunter3)/)],
    ] as const) {
      expect(of(content)).toEqual(["postgres://me:two@host/db", problem]);
    }
    rmSync(path);
    expect([databaseUrl.reveal(), databaseUrl.problem()]).toEqual([
      "postgres://me:two@host/db",
      `DATABASE_URL_FILE ${path} cannot be read: ENOENT`,
    ]);
    expect(of("postgres://me:four@host/db")).toEqual(["postgres://me:four@host/db", undefined]);
    expect([...secretFilesOf(readConfig({ DATABASE_URL_FILE: path })).keys()]).toEqual(["DATABASE_URL_FILE"]);
    expect(secretFilesOf(readConfig({ DATABASE_URL: "postgres://x" })).size).toBe(0);
  });

  test("change the digest, and so does the largest response: failures are asked for at once", () => {
    const digests = [{}, { USAGE_API_KEY: `${KEY}2` }, { USAGE_RESPONSE_LIMIT: "1024" }].flatMap((changed) =>
      readConfig({ ...SOURCE, ...changed }).sources.map(configurationDigest),
    );
    expect(new Set(digests).size).toBe(3);
  });
});

describe("several sources", () => {
  const read = (content: unknown, more: Record<string, string> = {}) => ({
    USAGE_SOURCES_FILE: temporaryFile(
      typeof content === "string" ? content : JSON.stringify(content),
      "sources.json",
    ),
    ...more,
  });
  const eu = { slug: "eu", baseUrl: "https://eu.example.com", apiKey: KEY };

  test("have their own defaults, ids in lower case, and keys in files", () => {
    const upper = "AAAAAAAA-2222-3333-4444-555555555555";
    const { apiKey: _, ...us } = { ...eu, slug: "us", workspaceIds: [upper], rateLimit: 5 };
    const { sources } = readConfig(read([eu, { ...us, apiKeyFile: temporaryFile(`${KEY}\n`) }]));
    expect(sources[1]?.apiKey.reveal()).toBe(KEY);
    expect(sources).toMatchObject([
      { slug: "eu", dataStart: "2026-01-05", rateLimit: 200, workspaceIds: [] },
      { slug: "us", rateLimit: 5, workspaceIds: [upper.toLowerCase()] },
    ]);
  });

  test.each([
    ["not JSON", "{", "is not JSON"],
    ["nested too deep", "[".repeat(30_000) + "]".repeat(30_000), "nested more than 200 levels"],
    ["a slug twice", [eu, eu], "slug eu is used twice"],
    ["an unknown field", [{ ...eu, apikey: "x" }], "apikey"],
    ["no key", [{ slug: "eu", baseUrl: eu.baseUrl }], "needs apiKey or apiKeyFile"],
    ["two keys", [{ ...eu, apiKeyFile: "/x" }], "needs apiKey or apiKeyFile"],
    ["a token with a space", [{ ...eu, bearerToken: "a b" }], "bearerToken has a space"],
  ])("%s is refused", (_, content, text) => {
    const problems = problemsOf(read(content)).join("\n");
    expect(problems).toContain(text);
    expect(problems).not.toContain(KEY);
  });

  test("and USAGE_BASE_URL together are refused", () => {
    expect(problemsOf(read([eu], SOURCE)).join("\n")).toContain("keep one of them");
  });
});

test("the setting of viewers holds a token, an issuer of tokens, or both", () => {
  const settings = (token: string, more = {}) => {
    return { ...SOURCE, USAGE_WEB_READ_TOKEN: token, USAGE_WEB_URL: "https://usage.example.com", ...more };
  };
  const problems = (token: string, more = {}) => problemsOf(settings(token, more));
  const operator = { USAGE_WEB_TOKEN: "operators-token-4711" };
  for (const good of [
    "viewers-token-4712",
    "viewers, token-4712",
    "https://login.example.com",
    "https://login.example.com/realms/main/",
    "viewers-token-4712,https://login.example.com",
    "http://localhost:8080/realms/main",
  ])
    expect(readConfig(settings(good, operator)).webReadToken?.reveal()).toBe(good);
  const issuer = "https://login.example.com";
  for (const [bad, why] of [
    ["short", /16 characters/],
    [`short,${issuer}`, /16 characters/],
    ["http://login.example.com/", /names an issuer without https/],
    ["http://localhost.evil.example/", /names an issuer without https/],
    [`${issuer}/?a=b`, /names an issuer that has a query/],
    ["https://me:hunter2@login.example.com", /names an issuer that has a user/],
  ] as const)
    expect(problems(bad), bad).toEqual([expect.stringMatching(why)]);
  expect(problems(`operators-token-4711,${issuer}`, operator)).toEqual([
    expect.stringMatching(/are the same/),
  ]);
  expect(problems(issuer, { USAGE_WEB_URL: "" })).toEqual([expect.stringMatching(/set USAGE_WEB_URL/)]);
});

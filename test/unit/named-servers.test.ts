import { expect, test } from "vitest";
import { UnreachableError, UsageError } from "../../src/errors.ts";
import { namedPostgres, namedRedis } from "../../src/local/servers/resolve.ts";
import { shownUrl } from "../../src/url.ts";

const SECRET = "hunter2";

// Port 1 (tcpmux) is served nowhere.
test.for([
  ["postgres_unreachable", namedPostgres, { DATABASE_URL: `postgresql://etl:${SECRET}@127.0.0.1:1/usage` }],
  ["redis_unreachable", namedRedis, { REDIS_URL: `redis://:${SECRET}@127.0.0.1:1` }],
] as const)(
  "%s reports a named server that does not answer, without its password",
  async ([code, named, env]) => {
    const error = await named(env).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error).toMatchObject({
      code,
      message: expect.stringMatching(/127\.0\.0\.1:1.*does not answer/),
      retryable: true,
    });
    expect(`${error} ${(error as UnreachableError).next}`).not.toContain(SECRET);
    expect((error as UnreachableError).next).toContain(Object.keys(env)[0]);
  },
);

test.for([
  ["not a URL", { DATABASE_URL: `etl:${SECRET}@db` }],
  ["another scheme", { DATABASE_URL: `mysql://etl:${SECRET}@db/usage` }],
  [
    "two ways at once",
    { DATABASE_URL: `postgresql://etl:${SECRET}@db/usage`, DATABASE_URL_FILE: "/run/secret" },
  ],
  ["a file that is not there", { DATABASE_URL_FILE: "/nowhere/secret" }],
] as const)("DATABASE_URL is refused: %s", async ([, env]) => {
  const error = await namedPostgres(env).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UsageError);
  expect(error).toMatchObject({
    code: "configuration_invalid",
    message: expect.stringContaining("DATABASE_URL"),
  });
  expect(`${error} ${(error as UsageError).next}`).not.toContain(SECRET);
});

test.for([
  [`postgresql://etl:${SECRET}@db:5433/usage?sslmode=require`, "postgresql://etl:[redacted]@db:5433/usage"],
  [`postgresql://${SECRET}@db/usage`, "postgresql://[redacted]@db/usage"],
  [`postgresql://etl:42#${SECRET}@db/usage`, "(an address that is not valid)"],
])("a URL in a message has neither password nor parameters: %s", ([url, shown]) => {
  expect(shownUrl(url as string)).toBe(shown);
});

import { expect, test } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { namedPostgres, namedRedis } from "../../src/local/servers/resolve.ts";

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

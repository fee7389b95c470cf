import pg from "pg";
import { describe, expect, test, vi } from "vitest";
import { describeConfig } from "../../../../src/app/commands/config.ts";
import { readConfig } from "../../../../src/core/base/config.ts";
import { EtlError } from "../../../../src/core/base/errors.ts";
import { redisFault } from "../../../../src/core/base/redis-connect.ts";
import { describeRedis } from "../../../../src/core/base/redis-server.ts";
import { Secret } from "../../../../src/core/base/secret.ts";
import { connectionError } from "../../../../src/core/store/db/connection-error.ts";
import { openPlace } from "../../../../src/features/export/place.ts";
import type { Route } from "../../../../src/features/owners/alert-route.ts";
import { type Receiver, receiverOf } from "../../../../src/features/owners/receiver.ts";

const ASCII = Array.from({ length: 95 }, (_, n) => String.fromCharCode(32 + n));
const MARKS = [...ASCII.filter((mark) => /[^a-z0-9]/i.test(mark)), "\t", "\u200b", "é", "𝒳", "＠", "／"];
/** Digits before a mark would pass for a port, and `%41` for an A. */
const PASSWORDS = MARKS.flatMap((mark) => [`${mark}q7Zk3W9Xv`, `4242${mark}W9Xv`, `q7Zk${mark}3W9Xv${mark}`]);

function piecesOf(password: string): string[] {
  return [password, encodeURIComponent(password)].flatMap((text) =>
    Array.from({ length: text.length - 3 }, (_, at) => text.slice(at, at + 4)),
  );
}

function expectHidden(shown: string, password: string, what: string): void {
  const found = piecesOf(password).filter((piece) => shown.includes(piece));
  if (found.length > 0) expect.fail(`${what} shows ${JSON.stringify(found)} of ${password}: ${shown}`);
}

function outcomeOf<T>(read: () => T): { said: string } | { value: T } {
  try {
    return { value: read() };
  } catch (error) {
    if (!(error instanceof EtlError)) throw error;
    return { said: `${error.message} ${error.next} ${error.stack}` };
  }
}

/** Each URL with the password as it is, then percent-encoded, which must be accepted. */
function eachUrl(urlOf: (login: string) => string, check: (url: string, password: string) => boolean): void {
  for (const password of PASSWORDS) {
    check(urlOf(password), password);
    if (!check(urlOf(encodeURIComponent(password)), password))
      expect.fail(`percent-encoded, ${JSON.stringify(password)} is refused`);
  }
}

function readHidden(environment: Record<string, string>, password: string) {
  const read = outcomeOf(() => readConfig(environment));
  expectHidden(
    JSON.stringify([describeConfig(environment), read]),
    password,
    Object.keys(environment).join(),
  );
  return read;
}

const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const unknown = Object.assign(new Error("no such database"), { code: "3D000" });

describe.each(["DATABASE_URL", "DATABASE_MIGRATE_URL"] as const)("%s", (name) => {
  test.each([
    (login: string) => `postgres://usage:${login}@db.example:5432/usage?sslmode=disable`,
    (login: string) => `postgresql://:${login}@db.example/usage`,
    (login: string) => `postgresql://us%40er:${login}@[::1]`,
  ])("shows no part of a password, and pg uses the one that was meant: %s", (urlOf) => {
    eachUrl(urlOf, (url, password) => {
      const read = readHidden({ [name]: url }, password);
      if ("said" in read) return false;
      const secret = name === "DATABASE_URL" ? read.value.databaseUrl : read.value.databaseMigrateUrl;
      expect(new pg.Client({ connectionString: secret?.reveal() ?? "" }).password).toBe(password);
      for (const cause of [refused, unknown]) {
        const error = connectionError(cause, { address: url, variable: name });
        expectHidden(`${error.message} ${error.next}`, password, "the error");
      }
      return true;
    });
  });
});

test.each([
  (login: string) => `redis://:${login}@cache.example:6379/1`,
  (login: string) => `rediss://usage:${login}@cache.example?family=6`,
  (login: string) => `redis://usage:${login}@a.example:1,b.example:2`,
  (login: string) => `redis://usage:${login}@a.example,redis://usage:${login}@b.example:2`,
  (login: string) => `redis+cluster://usage:${login}@a.example`,
  (login: string) => `redis+sentinel://usage:${login}@a.example:1,b.example/main/0?sentinelUsername=watcher`,
])("REDIS_URL shows no part of a password, and the login is the one that was meant: %s", (urlOf) => {
  eachUrl(urlOf, (url, password) => {
    const read = readHidden({ REDIS_URL: url }, password);
    if ("said" in read || read.value.redis === undefined) return false;
    const { redis } = read.value;
    expect(redis.access().password).toBe(password);
    const error = redisFault(redis, ["connect ECONNREFUSED"]);
    expectHidden(`${error.message} ${error.next} ${describeRedis(redis)}`, password, "the error");
    return true;
  });
});

test.each([
  (secret: string) => `https://hooks.example/services/${secret}`,
  (secret: string) => `https://hooks.example/?token=${secret}`,
  (secret: string) => `https://hooks.example:8443/x?a=b&token=${secret}`,
  (secret: string) => `http://${secret}@hooks.example/x`,
  (secret: string) => `http://user:${secret}@hooks.example/x`,
])("USAGE_ALERT_WEBHOOK_URL shows no part of a secret anywhere in it: %s", (urlOf) => {
  for (const secret of PASSWORDS) {
    for (const url of [urlOf(secret), urlOf(encodeURIComponent(secret))]) {
      const read = readHidden({ USAGE_ALERT_WEBHOOK_URL: url }, secret);
      if ("said" in read) continue;
      const { username, password, pathname, search, hash } = new URL(url);
      expect(hash).toBe("");
      expect(decodeURIComponent(`${username}:${password} ${pathname}${search}`)).toContain(secret);
    }
  }
});

test("a webhook of Teams may have an @ in its path, after a host without a port", () => {
  const url = "https://acme.webhook.office.com/webhookb2/8ea@5b3/IncomingWebhook/q7Zk/3W9Xv";
  expect(readHidden({ USAGE_ALERT_WEBHOOK_URL: url }, "q7Zk3W9Xv")).toHaveProperty("value");
  expect(receive("teams", url)).toEqual({ value: { type: "teams", url, login: undefined } });
  for (const cut of ["http://user:42/W9Xv@hooks.example/x", "https://hooks.example:42/W9Xv@x/y"])
    expect(receive("teams", cut)).toHaveProperty("said");
});

const route = (type: Route["type"]): Route =>
  ({ name: "all", type, setting: "USAGE_ROUTE_ALL", sender: "a@b.example", recipients: [] }) as never;

function receive(type: Route["type"], value: string) {
  return outcomeOf<Receiver>(() =>
    receiverOf(route(type), new Map([["USAGE_ROUTE_ALL", new Secret(value)]])),
  );
}

test("a mail server's login is the one that was meant, or is refused without a part of it", () => {
  eachUrl(
    (login) => `smtps://usage:${login}@mail.example:465`,
    (url, password) => {
      readHidden({ USAGE_ROUTE_ALL: url }, password);
      const read = receive("email", url);
      if ("said" in read) expectHidden(read.said, password, "the refusal");
      else if (read.value.type === "email") expect(read.value.login?.pass).toBe(password);
      return "value" in read;
    },
  );
});

test.each(["webhook", "slack", "teams", "google_chat"] as const)(
  "the login of a route of type %s is the one that was meant, apart from its address, or is refused",
  (type) => {
    eachUrl(
      (login) => `https://user:${login}@hooks.example/x`,
      (url, password) => {
        readHidden({ USAGE_ROUTE_ALL: url }, password);
        const read = receive(type, url);
        if ("said" in read) expectHidden(read.said, password, "the refusal");
        else
          expect(read.value).toEqual({
            type,
            url: "https://hooks.example/x",
            login: { user: "user", pass: password },
          });
        return "value" in read;
      },
    );
  },
);

test("a route of type pagerduty sends no login that nobody would read", () => {
  for (const password of PASSWORDS) {
    const read = receive("pagerduty", `https://user:${password}@hooks.example/x`);
    if ("said" in read) expectHidden(read.said, password, "the refusal");
    else expect.fail(`the password ${password} is taken`);
  }
});

test.each([
  (secret: string) => `s3://AKIA:${secret}@bucket/prefix`,
  (secret: string) => `s3://${secret}@bucket`,
  (secret: string) => `s3:/AKIA:${secret}@bucket/prefix`,
  (secret: string) => `s3:AKIA:${secret}@bucket/prefix`,
  (secret: string) => `s3://bucket/prefix?s3_secret_access_key=${secret}`,
])("an address of files with a secret is refused without a part of it: %s", async (addressOf) => {
  for (const secret of PASSWORDS) {
    for (const address of [addressOf(secret), addressOf(encodeURIComponent(secret))]) {
      readHidden({ USAGE_EXPORT_DIR: address }, secret);
      const error = await openPlace(address, { signal: AbortSignal.abort() }).then(
        () => undefined,
        (cause: EtlError) => cause,
      );
      expect(error?.code).toBe("files_place_refused");
      expectHidden(`${error?.message} ${error?.next}`, secret, "the refusal");
    }
  }
});

test.each(["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])(
  "%s with a login is refused without a part of it",
  async (name) => {
    for (const secret of ["4242#W9Xv", "q7ZkW9Xv"]) {
      vi.stubEnv(name, `http://user:${secret}@127.0.0.1`);
      const opened = openPlace("s3://bucket/prefix", { signal: AbortSignal.abort() });
      const error: EtlError = await opened.then(
        () => expect.fail("it is taken"),
        (cause) => cause,
      );
      expect([error.code, error.message]).toEqual([
        "files_place_refused",
        expect.stringContaining(`${name} has`),
      ]);
      expectHidden(`${error.message} ${error.next}`, secret, "the refusal");
    }
    vi.unstubAllEnvs();
  },
);

test("an address that every page shows takes no secret", () => {
  const names = ["USAGE_BASE_URL", "USAGE_CONTROL_PLANE_URL", "USAGE_DEPLOYMENT_URL", "USAGE_WEB_URL"];
  for (const secret of PASSWORDS) {
    for (const url of [
      `https://user:${secret}@api.example`,
      `https://${secret}@api.example/prefix`,
      `https://api.example/?key=${secret}`,
      `https:user:${secret}@api.example`,
      `https:///user:${secret}@api.example`,
    ]) {
      const given = Object.fromEntries(names.map((name) => [name, url]));
      const read = readHidden(given, secret);
      for (const name of names) expect("said" in read && read.said).toContain(`${name} `);
    }
  }
});

import { expect, test } from "vitest";
import { redisServerOf } from "../../../../src/core/base/redis-server.ts";

const parts = (url: string, more: object = {}) => {
  const { kind, hosts, primary, database, access } = redisServerOf({ url, ...more });
  const { username, password, tls } = access();
  return {
    kind,
    hosts: hosts.map(({ host, port }) => `${host}:${port}`),
    primary,
    database,
    username,
    password,
    isEncrypted: tls !== undefined,
  };
};
const plain = { primary: "", database: 0, username: undefined, password: undefined, isEncrypted: false };

test.each([
  ["redis://cache", { kind: "single", hosts: ["cache:6379"] }],
  ["rediss://cache:1/3", { kind: "single", hosts: ["cache:1"], database: 3, isEncrypted: true }],
  ["redis://a%40b:c%2Fd@cache", { kind: "single", hosts: ["cache:6379"], username: "a@b", password: "c/d" }],
  ["redis://a,b:1", { kind: "cluster", hosts: ["a:6379", "b:1"] }],
  ["redis://u@a,redis://b:1", { kind: "cluster", hosts: ["a:6379", "b:1"], username: "u" }],
  ["rediss+cluster://cache", { kind: "cluster", hosts: ["cache:6379"], isEncrypted: true }],
  ["redis+sentinel://a,b:1", { kind: "sentinel", hosts: ["a:26379", "b:1"], primary: "mymaster" }],
  [
    "rediss+sentinel://u:p@[::1]/usage/2",
    {
      kind: "sentinel",
      hosts: ["::1:26379"],
      primary: "usage",
      database: 2,
      username: "u",
      password: "p",
      isEncrypted: true,
    },
  ],
])("%s", (url, expected) => {
  expect(parts(url)).toEqual({ ...plain, ...expected });
});

test("a password of its own goes before that of the URL, whose user stays", () => {
  expect(parts("redis://u:old@cache", { password: "new" })).toMatchObject({ username: "u", password: "new" });
});

test("the user of Sentinels is an option of the URL", () => {
  const given = { url: "redis+sentinel://a/usage?sentinelUsername=watcher", sentinelPassword: "secret" };
  expect(redisServerOf(given).access()).toMatchObject({
    sentinelUsername: "watcher",
    sentinelPassword: "secret",
  });
});

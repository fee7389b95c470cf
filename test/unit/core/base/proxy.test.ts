import { expect, test } from "vitest";
import { describeProxy, proxyOf } from "../../../../src/core/base/proxy.ts";

const via = (target: string, environment: Record<string, string>) =>
  proxyOf(new URL(target), environment)?.url.href;

test.each([
  ["http://a.test/", { HTTP_PROXY: "http://p:1", HTTPS_PROXY: "http://s:2" }, "http://p:1/"],
  ["https://a.test/", { HTTP_PROXY: "http://p:1", HTTPS_PROXY: "http://s:2" }, "http://s:2/"],
  ["https://a.test/", { HTTP_PROXY: "http://p:1" }, undefined],
  ["https://a.test/", { https_proxy: "https://low:3", HTTPS_PROXY: "http://s:2" }, "https://low:3/"],
  ["https://a.test/", { https_proxy: " ", HTTPS_PROXY: "http://s:2" }, "http://s:2/"],
  ["https://a.test/", { HTTPS_PROXY: "ada:p%40ss@proxy.test:3128" }, "http://ada:p%40ss@proxy.test:3128/"],
  ["http://a.test/", {}, undefined],
])("%s with %j goes through %s", (target, environment, proxy) => {
  expect(via(target, environment)).toBe(proxy);
});

test.each([
  ["*", ["a.test", "10.0.0.1", "[::1]"], []],
  ["example.com", ["example.com", "api.example.com", "EXAMPLE.com.", "example.com:8443"], ["notexample.com"]],
  [".example.com", ["example.com", "a.b.example.com"], ["example.com.evil.test"]],
  ["*.Example.com.", ["api.example.com"], ["example.com"]],
  ["a.test:8080,  b.test", ["a.test:8080", "b.test", "b.test:1"], ["a.test", "c.test"]],
  ["a.test:80 b.test:443", ["http://a.test", "b.test"], ["a.test", "http://b.test"]],
  ["10.0.0.0/8", ["10.255.3.4", "[::ffff:10.1.2.3]"], ["11.0.0.1", "10.test"]],
  ["172.16.0.0/12,192.168.7.9", ["172.31.255.255", "192.168.7.9"], ["172.32.0.0", "192.168.7.8"]],
  ["fd00::/8 [2001:db8::1]:8443", ["[fd12::9]", "[2001:db8::1]:8443"], ["[fe00::1]", "[2001:db8::1]"]],
  ["2001:0DB8:0::00:5", ["[2001:db8::5]"], ["[2001:db8::6]"]],
  ["10.0.0.0/99, 10.0.0.0/, /8, :443, ., [", [], ["10.0.0.1", "a.test"]],
  [
    "",
    ["localhost", "db.localhost", "127.0.0.1:8080", "127.9.9.9", "[::1]"],
    ["localhost.test", "128.0.0.1"],
  ],
])("NO_PROXY=%s names %j, and not %j", (NO_PROXY, direct, proxied) => {
  const variables = { HTTP_PROXY: "http://p:1", HTTPS_PROXY: "http://p:1", NO_PROXY };
  const isDirect = (at: string) => via(at.startsWith("http") ? at : `https://${at}`, variables) === undefined;
  expect(direct.filter((at) => !isDirect(at))).toEqual([]);
  expect(proxied.filter(isDirect)).toEqual([]);
});

test.each([
  "socks5://ada:sesame-1@proxy.test:1080",
  "http://ada:sesame-1/x@proxy.test",
  "http://ada:sesame-1%@proxy.test",
  "http://",
  "http://proxy.test:99999",
])("a proxy that cannot be used is refused without its password: %s", (value) => {
  const refused = () => via("https://api.test/", { HTTPS_PROXY: value });
  expect(refused).toThrow(/^HTTPS_PROXY (is not of the form|has a character)/);
  expect(refused).not.toThrow(/sesame/);
});

test("a description names the proxy without its login, and nothing where no proxy is set", () => {
  const variables = { HTTPS_PROXY: "http://ada:sesame-1@proxy.test:3128", NO_PROXY: "in.test" };
  const described = (target: string) => describeProxy(new URL(target), variables);
  expect(described("https://api.test/hook/secret")).toBe(
    "https://api.test: through the proxy http://proxy.test:3128 (HTTPS_PROXY)",
  );
  expect(described("https://in.test")).toBe("https://in.test: without a proxy");
  expect(described("http://api.test")).toBe("http://api.test: without a proxy");
  expect(describeProxy(new URL("https://api.test"), { NO_PROXY: "*" })).toBeUndefined();
});

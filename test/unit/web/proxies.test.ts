import { expect, test } from "vitest";
import { networksOf } from "../../../src/core/base/networks.ts";
import { networkOf } from "../../../src/web/proxies.ts";

test("addresses of one person are one, in whatever way they are written, and those of two are two", () => {
  const same: [string, ...string[]][] = [
    ["203.0.113.7", "203.0.113.7:4711", "::ffff:203.0.113.7", "::FFFF:203.0.113.7"],
    ["203.0.113.8"],
    ["2001:db8:1:2::1", "2001:db8:1:2:ffff::", "[2001:DB8:1:2::9]:443", "2001:0db8:0001:0002:3:4:5:6"],
    ["2001:db8:1:3::1", "2001:db8:1:3::"],
    ["::1", "0:0:0:0:1::1"],
    ["fe80::1%eth0", "fe80::2"],
    ["64:ff9b::192.0.2.1", "64:ff9b::1"],
    ["1::2:3:4:5:6:7", "1:0:2:3::"],
    ["unknown", "", "_hidden", "x".repeat(9_000)],
  ];
  const networks = same.map((addresses) => new Set(addresses.map(networkOf)));
  expect(networks.map(({ size }) => size)).toEqual(same.map(() => 1));
  expect(new Set(networks.flatMap((one) => [...one])).size).toBe(same.length);
});

test("a proxy is known by its address or network, in both ways to write IPv4", () => {
  const isProxy = networksOf(["127.0.0.1", "10.0.0.0/8", "fd00::/8"]);
  for (const address of ["127.0.0.1", "::ffff:127.0.0.1", "10.9.8.7", "::ffff:10.0.0.1", "fd12::1"])
    expect([address, isProxy(address)]).toEqual([address, true]);
  for (const address of [
    "127.0.0.2",
    "11.0.0.1",
    "fe00::1",
    "::ffff:11.0.0.1",
    "10.0.0.1:80",
    "nginx",
    "",
    undefined,
  ])
    expect([address, isProxy(address)]).toEqual([address, false]);
  expect(networksOf([])("127.0.0.1")).toBe(false);
});

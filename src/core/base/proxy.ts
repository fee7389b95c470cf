import { isIP } from "node:net";
import { UsageError } from "./errors.ts";
import { networksOf } from "./networks.ts";
import { urlProblem } from "./url.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface HttpProxy {
  /** May hold a login. */
  readonly url: URL;
  /** For messages: the address without a login, and the variable that names it. */
  readonly shown: string;
  readonly variable: string;
}

const FORM = "http://user:password@host:port";
const isLoopback = networksOf(["127.0.0.0/8", "::1"]);

/**
 * The proxy that the environment names for a URL, by the rules of curl: the scheme of the URL decides, and NO_PROXY names
 * exceptions. This machine itself is never reached through a proxy. Error: `proxy_invalid`.
 */
export function proxyOf(target: URL, environment: Environment = process.env): HttpProxy | undefined {
  const [variable, value] = given(target.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY", environment);
  const [, exceptions] = given("NO_PROXY", environment);
  if (value === "" || isDirect(target, exceptions)) return undefined;
  const text = value.includes("://") ? value : `http://${value}`;
  const problem = urlProblem(text, /^https?:$/, `is not of the form ${FORM}`);
  if (problem !== undefined)
    throw new UsageError({
      code: "proxy_invalid",
      message: `${variable} ${problem}.`,
      next: `Correct the address, or add ${target.hostname} to NO_PROXY.`,
    });
  const url = new URL(text);
  return { url, variable, shown: `${url.origin} (${variable})` };
}

/** Undefined if the environment names no proxy at all. */
export function describeProxy(target: URL, environment: Environment = process.env): string | undefined {
  if (["HTTPS_PROXY", "HTTP_PROXY"].every((name) => given(name, environment)[1] === "")) return undefined;
  const proxy = proxyOf(target, environment);
  return `${target.origin}: ${proxy === undefined ? "without a proxy" : `through the proxy ${proxy.shown}`}`;
}

/** Returns the status with which a proxy refused. undici has it in its message only. */
export function proxyRefusal(error: unknown): string | undefined {
  return /^Proxy [a-z ]+\((\d{3})\)/i.exec(String((error as { message?: unknown }).message))?.[1];
}

/** The name in lower case comes first, as in curl. A blank value counts as not set. */
function given(name: string, environment: Environment): [name: string, value: string] {
  const values = [name.toLowerCase(), name].map((one): [string, string] => [
    one,
    environment[one]?.trim() ?? "",
  ]);
  return values.find(([, value]) => value !== "") ?? [name, ""];
}

function isDirect({ protocol, hostname, port }: URL, exceptions: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, "");
  if (isLoopback(host) || /(^|\.)localhost$/.test(host)) return true;
  const usedPort = port || (protocol === "https:" ? "443" : "80");
  return exceptions.split(/[\s,]+/).some((entry) => {
    // An IPv6 address has several colons, and needs brackets before a port.
    const [, name = entry, onlyPort = usedPort] =
      /^\[(.+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+):(\d+)$/.exec(entry) ?? [];
    return onlyPort === usedPort && (isIP(host) === 0 ? isDomain(host, name) : isAddress(host, name));
  });
}

/** `example.com` and `.example.com` include the domain and its subdomains, `*.example.com` only the subdomains. */
function isDomain(host: string, name: string): boolean {
  if (name === "*") return true;
  const domain = name
    .replace(/^\*?\./, "")
    .replace(/\.$/, "")
    .toLowerCase();
  return domain !== "" && (host.endsWith(`.${domain}`) || (host === domain && !name.startsWith("*")));
}

function isAddress(host: string, name: string): boolean {
  const [address = "", bits = "0"] = name.split("/");
  const most = isIP(address) === 6 ? 128 : 32;
  const isNetwork = isIP(address) !== 0 && /^\d+$/.test(bits) && Number(bits) <= most;
  return name === "*" || (isNetwork && networksOf([name])(host));
}

import { isIP } from "node:net";

export type IsProxy = (address: string | undefined) => boolean;

/** Returns the network that one person may have: an IPv4 address, or 64 bits of IPv6. Some proxies add a port. */
export function networkOf(address: string): string {
  const [, ipv4] = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/i.exec(address) ?? [];
  if (ipv4 !== undefined) return ipv4;
  const [plain = ""] = address.replace(/^\[|\](:\d+)?$/g, "").split("%");
  if (isIP(plain) !== 6) return "unknown";
  // `URL` writes zeros as "::".
  const [head = "", tail = ""] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split("::");
  const [first, last] = [head, tail].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: 8 - (first?.length ?? 0) - (last?.length ?? 0) }, () => "0");
  return [first, zeros, last].flat().slice(0, 4).join(":");
}

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Config } from "../../../config/config.ts";

/** An `operator` may start, steer and close; a `viewer` looks, and sees no address of a user. */
export type Role = "operator" | "viewer";

/**
 * Who may look. `open`: everybody on this machine, as operator. `tokens`: whoever logs in. `off`: nobody, since the service
 * listens beyond this machine and no token is set.
 */
export type Access =
  | { readonly kind: "open" | "off"; readonly key: string }
  | {
      readonly kind: "tokens";
      /** Signs cookies. It follows from the tokens: every process accepts it, and a changed token ends all sessions. */
      readonly key: string;
      /** The role of a token, or undefined. */
      readonly roleOf: (token: string) => Role | undefined;
    };

type Settings = Pick<Config, "httpHost" | "webToken" | "webReadToken">;

export function accessOf({ httpHost, webToken, webReadToken }: Settings): Access {
  const tokens: [Role, string][] = [];
  if (webToken !== undefined) tokens.push(["operator", webToken.reveal()]);
  if (webReadToken !== undefined) tokens.push(["viewer", webReadToken.reveal()]);
  if (tokens.length === 0) {
    return { kind: isLoopback(httpHost) ? "open" : "off", key: randomBytes(32).toString("base64") };
  }
  const key = createHmac("sha256", JSON.stringify(tokens)).update("pages").digest("base64");
  return {
    kind: "tokens",
    key,
    roleOf: (given) => tokens.find(([, token]) => isSame(given, token))?.[0],
  };
}

/** Addresses that only this machine reaches. */
function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
}

/**
 * Whether a Host header names this machine. A page of another site can make its own name resolve to 127.0.0.1, and then
 * read what is open there.
 */
export function isOwnHost(header: string | undefined): boolean {
  const url = `http://${header ?? ""}/`;
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return isLoopback(hostname.replace(/^\[|\]$/g, "")) || hostname.endsWith(".localhost");
}

/** In the same time whatever the token: digests have one length. */
function isSame(given: string, token: string): boolean {
  const digest = (text: string) => createHmac("sha256", "compare").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

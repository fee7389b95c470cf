import { createRemoteJWKSet, customFetch, decodeJwt, errors, jwtVerify } from "jose";
import { fetch } from "undici";
import { z } from "zod";
import type { Clock } from "../../core/base/clock.ts";
import { openConnections } from "../../core/base/dispatcher.ts";
import { reasonOf, UnreachableError } from "../../core/base/errors.ts";

const WITHIN_MS = 5_000;
/** Anybody can send tokens, so a failed issuer is not requested again for each. */
const FAILED_FOR_MS = 10_000;
const CLOCKS_DIFFER_S = 60;
/** Errors about the response of the issuer. The others of jose are about the token. */
const OF_ISSUER: readonly string[] = [errors.JWKSTimeout, errors.JWKSInvalid, errors.JOSEError].map(
  ({ code }) => code,
);

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) });

/** Returns whether a token is a JWT that the issuer signed for `audience` and that is valid now. Error: `issuer_unreachable`. */
export function tokensOf(
  issuer: string,
  { audience, clock }: { audience: string; clock: Pick<Clock, "now"> },
): (token: string) => Promise<boolean> {
  let keys: ReturnType<typeof keysOf> | undefined;
  let keptUntil = Number.POSITIVE_INFINITY;
  const currentKeys = () => {
    if (keys !== undefined && clock.now() < keptUntil) return keys;
    keptUntil = Number.POSITIVE_INFINITY;
    keys = keysOf(issuer);
    keys.catch(() => {
      keptUntil = clock.now() + FAILED_FOR_MS;
    });
    return keys;
  };
  return async (token) => {
    if (!isOf(token, issuer)) return false;
    try {
      const { name, keySet } = await currentKeys();
      await jwtVerify(token, keySet, {
        issuer: name,
        audience,
        requiredClaims: ["exp"],
        clockTolerance: CLOCKS_DIFFER_S,
        currentDate: new Date(clock.now()),
      });
      return true;
    } catch (error) {
      if (error instanceof errors.JOSEError && !OF_ISSUER.includes(error.code)) return false;
      throw new UnreachableError({
        code: "issuer_unreachable",
        message: `The keys of the issuer ${issuer} cannot be read: ${reasonOf(error)}.`,
        next: "Try again in a minute. If the error stays, check the issuer in USAGE_WEB_READ_TOKEN.",
        cause: error,
      });
    }
  };
}

/** A token of another issuer makes no request. */
function isOf(token: string, issuer: string): boolean {
  try {
    return withoutSlash(decodeJwt(token).iss ?? "") === withoutSlash(issuer);
  } catch {
    return false;
  }
}

/** Reads the document of OpenID Connect, or that of RFC 8414, which puts the path of the issuer last. */
async function keysOf(issuer: string) {
  const { origin, pathname } = new URL(issuer);
  const path = withoutSlash(pathname);
  const read = async (url: string) => {
    const response = await get(url, { signal: AbortSignal.timeout(WITHIN_MS) });
    if (!response.ok) throw new Error(`${url} responds with status ${response.status}`);
    return metadataSchema.parse(await response.json());
  };
  const { issuer: name, jwks_uri } = await read(`${origin}${path}/.well-known/openid-configuration`).catch(
    () => read(`${origin}/.well-known/oauth-authorization-server${path}`),
  );
  if (withoutSlash(name) !== withoutSlash(issuer)) throw new Error(`it calls itself ${name}`);
  // Keys without TLS could be replaced on the way.
  if (new URL(jwks_uri).protocol !== new URL(issuer).protocol) throw new Error(`its keys are at ${jwks_uri}`);
  const keySet = createRemoteJWKSet(new URL(jwks_uri), { timeoutDuration: WITHIN_MS, [customFetch]: get });
  return { name, keySet };
}

async function get(url: string, { signal }: { signal: AbortSignal }): Promise<Response> {
  const { dispatcher } = openConnections(new URL(url), { connections: 1, connectMs: WITHIN_MS });
  try {
    const response = await fetch(url, { dispatcher, signal, redirect: "error" });
    return new Response(await response.text(), { status: response.status });
  } finally {
    await dispatcher.destroy();
  }
}

function withoutSlash(text: string): string {
  return text.replace(/\/$/, "");
}

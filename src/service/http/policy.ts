import type { FastifyHelmetOptions } from "@fastify/helmet";

export const NONE = ["'none'"];
export const OWN = ["'self'"];

/** Nothing of another site is loaded, and no other site shows what is served here. `directives`: what a scope adds. */
export function policyOf(directives: Readonly<Record<string, string[]>>): FastifyHelmetOptions {
  return {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: NONE,
        scriptSrc: OWN,
        connectSrc: OWN,
        frameAncestors: NONE,
        ...directives,
      },
    },
    // The address may hold what somebody looks for. Whether TLS is there is for the proxy to say.
    referrerPolicy: { policy: "same-origin" },
    strictTransportSecurity: false,
  };
}

import type { FastifyHelmetOptions } from "@fastify/helmet";

export const NONE = ["'none'"];
export const OWN = ["'self'"];

/** Pages load nothing of another site, and no other site shows them. `directives`: additions of a scope. */
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
    // The address may hold search terms. Only a proxy knows whether there is TLS.
    referrerPolicy: { policy: "same-origin" },
    strictTransportSecurity: false,
  };
}

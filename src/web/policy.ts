import type { FastifyHelmetOptions } from "@fastify/helmet";

export const NONE = ["'none'"];
export const OWN = ["'self'"];

/** Pages load nothing from other sites, and no other site can embed them. `directives`: additions of a scope. */
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
    // An address may hold search terms. HSTS is off, because only a proxy knows about TLS.
    referrerPolicy: { policy: "same-origin" },
    strictTransportSecurity: false,
  };
}

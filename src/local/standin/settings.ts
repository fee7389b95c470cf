/** How the server answers. A test may change each setting while the server runs. */
export interface Settings {
  /** Which of the two contracts in the field is spoken (docs/platform.md, Contracts). */
  contract: "tiered" | "day-granular";
  /**
   * What the server does with a query parameter that the contract does not have, such as `kind` and `trace_tier` with
   * the tiered one. What servers in the field do is not known.
   */
  unknownParameters: "ignore" | "400" | "422";
  /** Whether deployment usage is counted. Without it, `kind` is accepted and nothing is answered. */
  deploymentUsage: "on" | "off";
  /** The version in `/info`. */
  serverVersion: string;
  /** A self-hosted server of 0.16.0 or later keeps no long-lived usage. */
  hosting: "self-hosted" | "cloud";
  /** Where 7-, 30- and 365-day buckets start. */
  align: "window" | "epoch";
  /** False: /workspaces, /orgs/current and /info answer 404. */
  listing: boolean;
  /** False: the routes of the organisation's bill (totals of the provider, limits, billing period) answer 404. */
  bill: boolean;
  /** True: an end_time in the future is answered with 422. */
  refuseFuture: boolean;
  /** True: buckets without usage are left out; false: they are sent as 0. */
  omitZero: boolean;
  /** True: answers are compressed with gzip if the client accepts it. */
  compress: boolean;
  /** How the end of a body is marked. The CSV export streams, so `length` sends it in chunks. */
  framing: "length" | "chunked" | "close";
  /** Of the deployment's configuration file: true removes `/a2a` and the agent cards. */
  http: { disable_a2a: boolean };
  /** `specified`: A2A as the specification has it. `live`: as newer servers speak it (docs/platform.md, Agent server). */
  a2a: "specified" | "live";
  /** Off: the costs of sandboxes are not answered, as on servers that do not have them (docs/platform.md, Sandbox costs). */
  sandboxes: "on" | "off";
  /** Off: the spend of evaluators is not answered, as on servers that do not have it (docs/platform.md, Evaluator spend). */
  evaluators: "on" | "off";
  /** Off: resource tags are refused, as on smaller plans (docs/platform.md, Resource tags). */
  tags: "on" | "off";
  /** False: template calls are gone, as on servers with snapshots (docs/platform.md, Control plane). */
  templates: boolean;
}

export const DEFAULT_SETTINGS: Settings = {
  contract: "tiered",
  // A typing error must not pass for a filter, and 422 is the only error of a wrong query that is specified.
  unknownParameters: "422",
  deploymentUsage: "on",
  serverVersion: "0.0.0-standin",
  hosting: "self-hosted",
  align: "window",
  listing: true,
  bill: true,
  refuseFuture: false,
  omitZero: true,
  compress: true,
  framing: "length",
  http: { disable_a2a: false },
  a2a: "specified",
  sandboxes: "off",
  evaluators: "off",
  tags: "off",
  templates: true,
};

/** From 0.16.0 on a self-hosted server tracks no long-lived usage (docs/platform.md, Contracts). */
export function keepsLonglived({ hosting, serverVersion }: Settings): boolean {
  const [major = 0, minor = 0] = serverVersion.split(".").map(Number);
  return hosting === "cloud" || (major === 0 && minor < 16);
}

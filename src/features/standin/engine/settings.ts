/** A test may change each setting while the server runs. */
export interface Settings {
  /** docs/platform.md, Contracts. */
  contract: "tiered" | "day-granular";
  /** Whether usage may be requested without `workspace_ids`; then it is that of all workspaces that the key reads. */
  workspaceIds: "required" | "optional";
  /** For parameters that the contract lacks, such as `kind` with the tiered one. What servers do is not known. */
  unknownParameters: "ignore" | "400" | "422";
  /** Off: `kind` is accepted and nothing is answered. */
  deploymentUsage: "on" | "off";
  serverVersion: string;
  /** Self-hosted servers from 0.16.0 on keep no long-lived usage. */
  hosting: "self-hosted" | "cloud";
  /** Start of 7-, 30- and 365-day buckets. */
  align: "window" | "epoch";
  /** False: /workspaces, /workspaces/current/stats, /orgs/current and /info respond with 404. */
  listing: boolean;
  /** False: totals of the provider, limits and billing period respond with 404. */
  bill: boolean;
  /** True: 422 for an end_time in the future. */
  refuseFuture: boolean;
  /** False: buckets without usage are sent as 0. */
  omitZero: boolean;
  /** With gzip, if the client accepts it. */
  compress: boolean;
  /** The end of a body. The CSV export streams, so `length` sends it in chunks. */
  framing: "length" | "chunked" | "close";
  /** True removes `/a2a` and the agent cards. */
  http: { disable_a2a: boolean };
  /** `live`: as newer servers (docs/platform.md, Agent server). */
  a2a: "specified" | "live";
  /** Off: not responded (docs/platform.md, Sandbox costs). */
  sandboxes: "on" | "off";
  /** Fixed: `page_size` is refused, by a sentence that does not name it. No document says that a server may do so. */
  sandboxPages: "documented" | "fixed";
  /** Off: not responded (docs/platform.md, Evaluator spend). */
  evaluators: "on" | "off";
  /** Off: refused, as on smaller plans (docs/platform.md, Resource tags). */
  tags: "on" | "off";
  /** False: lists of API keys, sandboxes and snapshots respond with 404. */
  names: boolean;
  /** False: gone, as on servers with snapshots (docs/platform.md, Control plane). */
  templates: boolean;
}

export const DEFAULT_SETTINGS: Settings = {
  contract: "tiered",
  workspaceIds: "required",
  // A typing error must not pass for a filter, and only 422 is specified for a wrong query.
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
  sandboxPages: "documented",
  evaluators: "off",
  tags: "off",
  names: true,
  templates: true,
};

/** docs/platform.md, Contracts. */
export function keepsLonglived({ hosting, serverVersion }: Settings): boolean {
  const [major = 0, minor = 0] = serverVersion.split(".").map(Number);
  return hosting === "cloud" || (major === 0 && minor < 16);
}

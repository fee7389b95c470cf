/** Tests may change each setting while the server runs. */
export interface Settings {
  /** docs/platform.md, Contracts. */
  contract: "tiered" | "day-granular";
  /** `optional`: usage without `workspace_ids` is that of all workspaces that the key reads. */
  workspaceIds: "required" | "optional";
  /** Treatment of parameters that the contract lacks, such as `kind` with `tiered`. What servers do is not known. */
  unknownParameters: "ignore" | "400" | "422";
  /** Off: `kind` is accepted, and the response has no usage. */
  deploymentUsage: "on" | "off";
  serverVersion: string;
  /** Self-hosted servers have no long-lived usage from 0.16.0 on. */
  hosting: "self-hosted" | "cloud";
  align: "window" | "epoch";
  /** False: /workspaces, /workspaces/current/stats, /orgs/current and /info respond with 404. */
  listing: boolean;
  /** False: provider totals, limits and billing period respond with 404. */
  bill: boolean;
  /** True: 422 for an end_time in the future. */
  refuseFuture: boolean;
  /** False: a bucket without usage is sent as 0. */
  omitZero: boolean;
  /** Responses use gzip if the client accepts it. */
  compress: boolean;
  /** How a body ends. With `length`, the CSV export is sent in chunks, because it streams. */
  framing: "length" | "chunked" | "close";
  /** True removes `/a2a` and the agent cards. */
  http: { disable_a2a: boolean };
  /** `specified`: like server 0.4.21. `live`: like 0.16.7 (docs/platform.md, Agent server). */
  a2a: "specified" | "live";
  /** Off: the route is missing (docs/platform.md, Sandbox costs). */
  sandboxes: "on" | "off";
  /** `fixed`: `page_size` is refused with a sentence that does not name it. No document mentions this. */
  sandboxPages: "documented" | "fixed";
  /** Off: the route is missing (docs/platform.md, Evaluator spend). */
  evaluators: "on" | "off";
  /** Off: the route is missing, as on most servers (docs/platform.md, Statement). */
  engine: "on" | "off";
  /** Off: tags are refused, as on smaller plans (docs/platform.md, Resource tags). */
  tags: "on" | "off";
  /** Off: the log is refused, as without the Enterprise plan (docs/platform.md, Audit log). */
  auditLog: "on" | "off";
  /** False: lists of API keys, sandboxes and snapshots respond with 404. */
  names: boolean;
  /** False: no such routes, as on servers with snapshots (docs/platform.md, Control plane). */
  templates: boolean;
}

export const DEFAULT_SETTINGS: Settings = {
  contract: "tiered",
  workspaceIds: "required",
  // With `ignore`, a misspelled filter would go unnoticed. Only 422 is specified for a wrong query.
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
  engine: "off",
  tags: "off",
  auditLog: "off",
  names: true,
  templates: true,
};

/** docs/platform.md, Contracts. */
export function keepsLonglived({ hosting, serverVersion }: Settings): boolean {
  const [major = 0, minor = 0] = serverVersion.split(".").map(Number);
  return hosting === "cloud" || (major === 0 && minor < 16);
}

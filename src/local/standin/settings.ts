import { z } from "zod";

/** How the server answers; each setting can be changed while it runs. */
export const settingsSchema = z.strictObject({
  /** Which of the two contracts in the field is spoken (docs/platform.md, Contracts). */
  contract: z.enum(["tiered", "day-granular"]),
  /**
   * What the server does with a query parameter that the contract does not have, such as `kind` and `trace_tier` with
   * the tiered one. What servers in the field do is not known.
   */
  unknownParameters: z.enum(["ignore", "400", "422"]),
  /** Deployment usage: kept, not switched on (accepted, without any usage), or `kind` is refused with 400. */
  deploymentUsage: z.enum(["on", "off", "refused"]),
  /** Measures of the other kind in a record: 0, or left out as in the examples of the platform's documentation. */
  otherMeasures: z.enum(["zero", "absent"]),
  /** What `/info` says. */
  serverVersion: z.string().min(1),
  /** A self-hosted server of 0.16.0 or later keeps no long-lived usage. */
  hosting: z.enum(["self-hosted", "cloud"]),
  /** Where 7-, 30- and 365-day buckets start. */
  align: z.enum(["window", "epoch"]),
  /** False: /workspaces, /orgs/current and /info answer 404. */
  listing: z.boolean(),
  /** False: the routes of the organisation's bill (totals of the provider, limits, billing period) answer 404. */
  bill: z.boolean(),
  /** True: an end_time in the future is answered with 422. */
  refuseFuture: z.boolean(),
  /** True: buckets without usage are left out; false: they are sent as 0. */
  omitZero: z.boolean(),
  /** True: answers are compressed with gzip if the client accepts it. */
  compress: z.boolean(),
  /** How the end of a body is marked. The CSV export streams, so `length` sends it in chunks. */
  framing: z.enum(["length", "chunked", "close"]),
  /** Of the deployment's configuration file: true removes `/a2a` and the agent cards. */
  http: z.strictObject({ disable_a2a: z.boolean() }),
  /** `specified`: A2A as the specification has it. `live`: as newer servers speak it (docs/platform.md, Agent server). */
  a2a: z.enum(["specified", "live"]),
  /** Off: the costs of sandboxes are not answered, as on servers that do not have them (docs/platform.md, Sandbox costs). */
  sandboxes: z.enum(["on", "off"]),
  /** Off: the spend of evaluators is not answered, as on servers that do not have it (docs/platform.md, Evaluator spend). */
  evaluators: z.enum(["on", "off"]),
  /** Off: resource tags are refused, as on smaller plans (docs/platform.md, Resource tags). */
  tags: z.enum(["on", "off"]),
  /** False: template calls are gone, as on servers with snapshots (docs/platform.md, Control plane). */
  templates: z.boolean(),
});

export type Settings = z.output<typeof settingsSchema>;
export type Framing = Settings["framing"];

export const DEFAULT_SETTINGS: Settings = {
  contract: "tiered",
  // A typing error must not pass for a filter, and 422 is the only error of a wrong query that is specified.
  unknownParameters: "422",
  deploymentUsage: "on",
  otherMeasures: "zero",
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
const WITHOUT_LONGLIVED = [0, 16, 0];

export function keepsLonglived({ hosting, serverVersion }: Settings): boolean {
  if (hosting === "cloud") return true;
  const version = /^v?(\d+)\.(\d+)\.(\d+)/.exec(serverVersion)?.slice(1).map(Number) ?? [];
  for (const [i, least] of WITHOUT_LONGLIVED.entries()) {
    const part = version[i] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}

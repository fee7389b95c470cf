/** Who is told what: the routes of an owner file. */

/** What an alert may be about. */
export const ALERT_KINDS = [
  "difference",
  "control_total",
  "provider_total",
  "usage_limit",
  "budget",
  "final_changed",
  "stale",
  "refused",
  "access_lost",
  "unpriced",
  "unusual",
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** A warning: nobody has to act yet, as where half of a budget is used. */
export const SEVERITIES = ["critical", "warning"] as const;
export type Severity = (typeof SEVERITIES)[number];

export const ROUTE_TYPES = ["webhook", "slack", "pagerduty", "email"] as const;
export type RouteType = (typeof ROUTE_TYPES)[number];

/** Where alerts are sent to, and which of them. */
export interface Route {
  /** Where it stands in the file, from 1 on. */
  readonly line: number;
  readonly name: string;
  readonly type: RouteType;
  /** The setting that holds its address or key: these are in no file and no table. */
  readonly setting: string;
  /** Of a mail. */
  readonly sender: string | null;
  readonly recipients: readonly string[];
  /** What it takes. Null: of every owner, and of none; of every kind; of both severities. */
  readonly owners: readonly string[] | null;
  readonly kinds: readonly AlertKind[] | null;
  readonly severities: readonly Severity[] | null;
}

/** The route of USAGE_ALERT_WEBHOOK_URL, which takes every alert. */
export const DEFAULT_ROUTE: Route = {
  line: 0,
  name: "default",
  type: "webhook",
  setting: "USAGE_ALERT_WEBHOOK_URL",
  sender: null,
  recipients: [],
  owners: null,
  kinds: null,
  severities: null,
};

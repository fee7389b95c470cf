import { METER_NOT_KNOWN } from "../../core/domain/usage/meter.ts";

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
  "workspace_unloaded",
  "invoice_open",
  "invoice_missing",
  METER_NOT_KNOWN,
  "unpriced",
  "unusual",
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** A warning needs no action yet: half of a budget is used, for example. */
export const SEVERITIES = ["critical", "warning"] as const;
export type Severity = (typeof SEVERITIES)[number];

export const ROUTE_TYPES = ["webhook", "slack", "teams", "google_chat", "pagerduty", "email"] as const;
export type RouteType = (typeof ROUTE_TYPES)[number];

export interface Route {
  readonly line: number;
  readonly name: string;
  readonly type: RouteType;
  /** Name of the setting that holds the address or key. No file and no table holds the secret. */
  readonly setting: string;
  /** Null and empty unless the type is `email`. */
  readonly sender: string | null;
  readonly recipients: readonly string[];
  /** Null: no filter. Without a filter by owner, incidents without an owner match too. */
  readonly owners: readonly string[] | null;
  readonly kinds: readonly AlertKind[] | null;
  readonly severities: readonly Severity[] | null;
}

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

interface Incident {
  readonly kind: AlertKind;
  /** Null: no owner. */
  readonly owner: string | null;
  readonly severity: Severity;
}

export function takes({ owners, kinds, severities }: Route, { kind, owner, severity }: Incident): boolean {
  return (
    (owners === null || (owner !== null && owners.includes(owner))) &&
    (kinds === null || kinds.includes(kind)) &&
    (severities === null || severities.includes(severity))
  );
}

export function describeTaken({ kinds, severities }: Route): string {
  const taken = kinds === null ? "everything" : kinds.join(", ");
  return severities?.length === 1 ? `${taken}; only ${severities[0]}` : taken;
}

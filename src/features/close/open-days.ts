import type { Period } from "../../core/domain/months/month.ts";
import { tierSettleAfterMs } from "../../core/domain/proof/lateness.ts";
import { shortInstant } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { METER, METER_NAME, METERS, type Meter, meterFlags } from "../../core/domain/usage/meter.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";

export interface OpenPoint {
  readonly reason: OpenReason;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly days: number;
  /** First and last of the days, as UTC midnights in epoch ms. */
  readonly first: number;
  readonly last: number;
  /** The platform's ids. */
  readonly workspaceIds: readonly string[];
}

interface Counted extends Pick<OpenPoint, "reason" | "meter" | "groupBy" | "first"> {
  days: number;
  last: number;
  readonly workspaceIds: Set<string>;
}

export function openPointsOf(open: readonly OpenDay[]): OpenPoint[] {
  const points = new Map<string, Counted>();
  // Days of one point usually follow each other, so most need no lookup.
  let point: Counted | undefined;
  for (const { reason, meter, groupBy, day, workspaceId } of open) {
    if (point?.reason !== reason || point.meter !== meter || point.groupBy !== groupBy) {
      const key = `${reason} ${meter} ${groupBy}`;
      point = points.get(key);
      point ??= { reason, meter, groupBy, days: 0, first: day, last: day, workspaceIds: new Set() };
      points.set(key, point);
    }
    point.days++;
    point.last = day;
    point.workspaceIds.add(workspaceId);
  }
  return [...points.values()]
    .map((one) => ({ ...one, workspaceIds: [...one.workspaceIds] }))
    .sort((a, b) => OPEN_REASONS.indexOf(a.reason) - OPEN_REASONS.indexOf(b.reason));
}

export interface CloseRequest {
  readonly month: Period;
  readonly withoutCosts?: boolean;
  readonly lacksPrice?: boolean;
  readonly settleAfterMs: number;
  /** Without Redis, the command itself loads. */
  readonly hasRedis: boolean;
  readonly digests?: readonly string[];
  readonly sourceFlags?: string;
}

interface Step {
  readonly kind:
    | "none"
    | "load"
    | "wait"
    | "repair"
    | "reconcile"
    | "check"
    | "accept"
    | "workspace"
    | "prices";
  /** Sentences for the user, with commands in backticks. */
  readonly text: string;
  readonly commands: readonly string[];
}

export function stepsOf(open: readonly OpenDay[], requested: CloseRequest): Step[] {
  const readable = open.filter(isReadable);
  return [
    ...(has(open, "not_available") ? [NO_DAYS] : []),
    ...METERS.flatMap((meter) => {
      const own = readable.filter((one) => one.meter === meter);
      return loadSteps(own, meter, requested);
    }),
    ...proofSteps(readable, requested),
    ...workspaceSteps(open, requested),
    ...acceptSteps(open, requested),
    ...(requested.lacksPrice ? [priceStep(requested)] : []),
  ];
}

function loadCommand({ month, hasRedis, sourceFlags = "" }: CloseRequest, meter: Meter): string {
  const tierFlags = meter === "traces" ? "" : ` ${meterFlags(meter)}`;
  const inlineFlags = hasRedis ? "" : " --inline";
  return `usage-etl backfill --from ${month.start} --to ${month.end}${tierFlags}${sourceFlags}${inlineFlags}`;
}

function closeCommand({
  month,
  withoutCosts,
  sourceFlags = "",
  digests = [],
}: Pick<CloseRequest, "month" | "withoutCosts" | "sourceFlags" | "digests">): string {
  const costFlags = withoutCosts ? " --without-costs" : "";
  const acceptFlags = digests.map((digest) => ` --accept ${digest}`).join("");
  return `usage-etl close ${month.name}${sourceFlags}${costFlags}${acceptFlags}`;
}

const NO_DAYS: Step = {
  kind: "none",
  text: "The platform does not support days, so this cannot be closed.",
  commands: [],
};

function loadSteps(own: readonly OpenDay[], meter: Meter, requested: CloseRequest): Step[] {
  const load = loadCommand(requested, meter);
  const of = meter === "traces" ? "" : ` of ${METER_NAME[meter]}`;
  const steps: Step[] = [];
  if (has(own, "not_known")) {
    const text = `Test again whether the server counts ${METER_NAME[meter]}: \`${load}\`. \`usage-etl doctor\` shows what it responded.`;
    steps.push({ kind: "load", text, commands: [load] });
  } else if (has(own, "failed")) {
    const text = `Load what failed${of}: \`${load}\`. \`usage-etl status\` shows why it failed.`;
    steps.push({ kind: "load", text, commands: [load] });
  } else if (has(own, "missing")) {
    steps.push({ kind: "load", text: `Load what is missing${of}: \`${load}\``, commands: [load] });
  }
  const provisional = own.filter(({ reason }) => reason === "provisional");
  if (provisional.length > 0) {
    const end = Math.max(...provisional.map(({ day }) => day)) + DAY_MS;
    const until = finalFrom(end, meter, requested.settleAfterMs);
    const text = `Wait until ${until}, and load again what is provisional${of}: \`${load}\``;
    steps.push({ kind: "wait", text, commands: [load] });
  }
  return steps;
}

function finalFrom(end: number, meter: Meter, settleAfterMs: number): string {
  const isTier = METER[meter].tier !== METER.traces.tier;
  const final = shortInstant(end + (isTier ? tierSettleAfterMs([], settleAfterMs) : settleAfterMs));
  return isTier
    ? `${final} at the latest, since traces may change their tier`
    : `${final} (USAGE_SETTLE_AFTER)`;
}

function proofSteps(readable: readonly OpenDay[], { month, sourceFlags = "" }: CloseRequest): Step[] {
  const reconcile = `usage-etl reconcile --from ${month.start} --to ${month.end}${sourceFlags}`;
  const steps: Step[] = [];
  if (has(readable, "open")) {
    const repair = `${reconcile} --repair`;
    const text = `Repair what differs from the export: \`${repair}\``;
    steps.push({ kind: "repair", text, commands: [repair] });
  } else if (has(readable, "not_reconciled") || readable.some(isTraceGap)) {
    const text = `Reconcile with the export: \`${reconcile}\``;
    steps.push({ kind: "reconcile", text, commands: [reconcile] });
  }
  if (has(readable, "tiers_differ")) {
    const check = `usage-etl totals --reach all${sourceFlags}`;
    const text = `Check again whether the retention tiers add up: \`${check}\``;
    steps.push({ kind: "check", text, commands: [check] });
  }
  return steps;
}

function workspaceSteps(open: readonly OpenDay[], requested: CloseRequest): Step[] {
  const unread = new Map(open.filter((one) => !isReadable(one)).map((one) => [one.workspaceId, one.access]));
  return [...unread].map(([workspaceId, access]) => {
    const [problem, remedy] = WAYS_OUT[access];
    const own = open.filter((one) => one.workspaceId === workspaceId);
    const meters = METERS.filter((meter) => own.some((one) => one.meter === meter));
    const commands = meters.map((meter) => loadCommand(requested, meter));
    return {
      kind: "workspace",
      text: `Workspace ${workspaceId} ${problem}. ${remedy} and load it: ${commands.map((one) => `\`${one}\``).join(", ")}`,
      commands,
    };
  });
}

/** The digests keep days that open after this list from being accepted unseen. */
function acceptSteps(open: readonly OpenDay[], requested: CloseRequest): Step[] {
  // The other days need no acceptance: the earlier steps load and prove them.
  if (!open.some((one) => !isReadable(one) || !REPAIRABLE.includes(one.reason))) return [];
  const without = workspacesLeftOut(open);
  const disputed = open.filter(({ workspaceId }) => !without.includes(workspaceId)).length;
  const parts = [
    ...(disputed === 0 ? [] : [`daily figures on which the platform contradicts itself (${disputed})`]),
    ...(without.length === 0 ? [] : [`a close without ${without.join(", ")}`]),
  ];
  const what = `Accept ${parts.join(", and ")}`;
  if (requested.digests === undefined) return [{ kind: "accept", text: what, commands: [] }];
  // A close would leave out every workspace.
  if (requested.digests.length === 0) return [];
  const accept = closeCommand(requested);
  return [{ kind: "accept", text: `${what}: \`${accept}\``, commands: [accept] }];
}

function priceStep(requested: CloseRequest): Step {
  const costless = closeCommand({ ...requested, digests: [], withoutCosts: true });
  return {
    kind: "prices",
    text: `No price is valid in ${requested.month.name}: import prices with \`usage-etl prices import FILE\`, or close without costs: \`${costless}\``,
    commands: [costless],
  };
}

function has(open: readonly OpenDay[], wanted: OpenReason): boolean {
  return open.some(({ reason }) => reason === wanted);
}

function isTraceGap({ meter, reason }: OpenDay): boolean {
  return meter === "traces" && (reason === "missing" || reason === "failed" || reason === "provisional");
}

function isReadable({ access, reason }: OpenDay): boolean {
  return access === "read" && reason !== "unverified";
}

const WAYS_OUT: Readonly<Record<OpenDay["access"], readonly [problem: string, remedy: string]>> = {
  read: ["was not named in any response lately", "Give the key access to it"],
  unlisted: ["left the platform's listing", "Give the key access to it again"],
  not_configured: ["is no longer configured", "Name it in USAGE_WORKSPACE_IDS again"],
};

/** Why a day of a meter, dimension and workspace keeps its month open. The first reason that applies is reported. */
export const OPEN_REASONS = [
  "not_available",
  "not_known",
  "missing",
  "failed",
  "unverified",
  "provisional",
  "open",
  "not_reconciled",
  "platform_disagrees",
  "total_differs",
  "tiers_differ",
  "provider_differs",
] as const;
export type OpenReason = (typeof OPEN_REASONS)[number];

const REPAIRABLE: readonly OpenReason[] = ["missing", "provisional", "open", "not_reconciled"];

/** No request repairs these differences. If the user accepts them, they are closed as stored. */
export const DISAGREEMENTS: readonly OpenReason[] = [
  "platform_disagrees",
  "total_differs",
  "tiers_differ",
  "provider_differs",
];

export type WorkspaceAccess = "read" | "unlisted" | "not_configured";

export interface OpenDay {
  readonly day: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly workspaceId: string;
  readonly access: WorkspaceAccess;
  readonly reason: OpenReason;
}

/** Workspaces that a close leaves out if the user accepts the open days: one of their days is not known or not proved. */
export function workspacesLeftOut(open: readonly OpenDay[]): string[] {
  const unknown = open.filter(({ reason }) => !DISAGREEMENTS.includes(reason));
  return [...new Set(unknown.map(({ workspaceId }) => workspaceId))].sort();
}

export const OPEN_WORDS: Readonly<Record<OpenReason, string>> = {
  not_available: "not available",
  not_known: "not known whether the server counts it",
  missing: "not loaded",
  failed: "failed",
  unverified: "access to the workspace is not proven",
  provisional: "provisional",
  open: "differs from the export",
  not_reconciled: "not reconciled with the export",
  platform_disagrees: "the platform's responses and its export differ",
  total_differs: "the platform's totals differ",
  tiers_differ: "the retention tiers do not add up",
  provider_differs: "the billing provider's total differs",
};

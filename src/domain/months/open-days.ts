import { tierSettleAfterMs } from "../proof/lateness.ts";
import { shortInstant } from "../time/days.ts";
import { DAY_MS } from "../time/stride.ts";
import { METER, METER_NAME, METERS, type Meter, meterFlags } from "../usage/meter.ts";
import type { GroupBy } from "../usage/record.ts";
import type { CalendarMonth } from "./month.ts";

/** One reason, meter and dimension that keep a month open. */
export interface OpenPoint {
  readonly reason: OpenReason;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly days: number;
  /** First and last of the days: UTC midnights, epoch milliseconds. */
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

/** Groups open days by reason, in the order in which reasons apply. `open` is sorted by day. */
export function openPointsOf(open: readonly OpenDay[]): OpenPoint[] {
  const points = new Map<string, Counted>();
  // Days of one point usually follow each other, so most of them need no lookup.
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

/** The requested close, and what the commands of the steps need. */
export interface AskedClose {
  readonly month: CalendarMonth;
  readonly without: readonly string[];
  readonly withoutCosts?: boolean;
  /** True if costs are wanted, there are traces, and no price is valid on any day of the month. */
  readonly lacksPrice?: boolean;
  readonly settleAfterMs: number;
  /** Without Redis a load runs in the process of the command. */
  readonly hasRedis: boolean;
  /** Digests of closes that accept the disagreements, one for each source where nothing else is open. */
  readonly digests?: readonly string[];
  readonly sourceFlags?: string;
}

/** What a person can do about some of the open points. */
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
  /** Sentences for a person, with commands in backticks. */
  readonly text: string;
  /** The commands of the text, without backticks. */
  readonly commands: readonly string[];
  readonly workspaceId?: string;
}

export function stepsOf(open: readonly OpenDay[], asked: AskedClose): Step[] {
  const readable = open.filter(isReadable);
  return [
    ...(has(open, "not_available") ? [NO_DAYS] : []),
    ...METERS.flatMap((meter) => {
      const own = readable.filter((one) => one.meter === meter);
      return loadSteps(own, meter, asked);
    }),
    ...proofSteps(readable, asked),
    ...acceptSteps(open, asked),
    ...workspaceSteps(open, asked),
    ...(asked.lacksPrice ? [priceStep(asked)] : []),
  ];
}

function loadCommand({ month, hasRedis, sourceFlags = "" }: AskedClose, meter: Meter): string {
  const tierFlags = meter === "traces" ? "" : ` ${meterFlags(meter)}`;
  const inlineFlags = hasRedis ? "" : " --inline";
  return `usage-etl backfill --from ${month.start} --to ${month.end}${tierFlags}${sourceFlags}${inlineFlags}`;
}

/** `digests` are those of the state that was previewed. */
function closeCommand(
  order: Pick<AskedClose, "month" | "without" | "withoutCosts" | "sourceFlags" | "digests"> & {
    readonly accepts?: boolean;
  },
): string {
  const { month, without, withoutCosts, accepts, sourceFlags = "", digests = [] } = order;
  const costFlags = withoutCosts ? " --without-costs" : "";
  const acceptFlags = accepts ? " --accept-disagreements" : "";
  const withoutFlags = without.map((id) => ` --without ${id}`).join("");
  const expectFlags = digests.map((digest) => ` --expect ${digest}`).join("");
  return `usage-etl close ${month.name}${sourceFlags}${costFlags}${acceptFlags}${withoutFlags}${expectFlags}`;
}

const NO_DAYS: Step = {
  kind: "none",
  text: "The platform does not answer in days, so the month cannot be closed.",
  commands: [],
};

/** Steps for days of one meter that are not loaded or not final. */
function loadSteps(own: readonly OpenDay[], meter: Meter, asked: AskedClose): Step[] {
  const load = loadCommand(asked, meter);
  const of = meter === "traces" ? "" : ` of ${METER_NAME[meter]}`;
  const steps: Step[] = [];
  if (has(own, "not_known")) {
    const text = `Ask the server again whether it counts ${METER_NAME[meter]}: \`${load}\`. \`usage-etl doctor\` shows what it answered.`;
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
    const until = finalFrom(end, meter, asked.settleAfterMs);
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

/** Steps for days that are loaded and not proved. */
function proofSteps(readable: readonly OpenDay[], { month, sourceFlags = "" }: AskedClose): Step[] {
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

function acceptSteps(open: readonly OpenDay[], asked: AskedClose): Step[] {
  if (!open.some(({ reason }) => DISAGREEMENTS.includes(reason))) return [];
  // The digests prevent that a difference found after this list is accepted unseen.
  const accept = closeCommand({ ...asked, accepts: true });
  const text = `Ask the platform about what differs there, or accept it: \`${accept}\``;
  return [{ kind: "accept", text, commands: [accept] }];
}

function workspaceSteps(open: readonly OpenDay[], asked: AskedClose): Step[] {
  const unread = new Map(open.filter((one) => !isReadable(one)).map((one) => [one.workspaceId, one.access]));
  return [...unread].map(([workspaceId, access]) => {
    const [problem, remedy] = WAYS_OUT[access];
    const own = open.filter((one) => one.workspaceId === workspaceId);
    const meters = METERS.filter((meter) => own.some((one) => one.meter === meter));
    const loads = meters.map((meter) => loadCommand(asked, meter));
    const leaveOut = closeCommand({ ...asked, digests: [], without: [workspaceId, ...asked.without] });
    return {
      kind: "workspace",
      text: `Workspace ${workspaceId} ${problem}. ${remedy} and load it: ${loads.map((one) => `\`${one}\``).join(", ")}. Or leave it out: \`${leaveOut}\``,
      commands: [...loads, leaveOut],
      workspaceId,
    };
  });
}

function priceStep(asked: AskedClose): Step {
  const costless = closeCommand({ ...asked, digests: [], withoutCosts: true });
  return {
    kind: "prices",
    text: `No price is valid in ${asked.month.name}: import prices with \`usage-etl prices import FILE\`, or close without costs: \`${costless}\``,
    commands: [costless],
  };
}

function has(open: readonly OpenDay[], wanted: OpenReason): boolean {
  return open.some(({ reason }) => reason === wanted);
}

function isTraceGap({ meter, reason }: OpenDay): boolean {
  return meter === "traces" && (reason === "missing" || reason === "failed" || reason === "provisional");
}

/** True if a sync and a reconcile can help. */
function isReadable({ access, reason }: OpenDay): boolean {
  return access === "read" && reason !== "unverified";
}

const WAYS_OUT: Readonly<Record<OpenDay["access"], readonly [problem: string, remedy: string]>> = {
  read: ["was not named in any response lately", "Give the key access to it"],
  unlisted: ["left the platform's listing", "Give the key access to it again"],
  not_configured: ["is not configured any more", "Name it in USAGE_WORKSPACE_IDS again"],
};

/** Why a day of a meter, dimension and workspace keeps its month open. The first that applies. */
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

/** No request repairs these. The month is closed if the user accepts them. */
export const DISAGREEMENTS: readonly OpenReason[] = [
  "platform_disagrees",
  "total_differs",
  "tiers_differ",
  "provider_differs",
];

/** Whether a sync requests a workspace. It does not if the listing or the configuration lacks it. */
export type WorkspaceAccess = "read" | "unlisted" | "not_configured";

export interface OpenDay {
  readonly day: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly workspaceId: string;
  readonly access: WorkspaceAccess;
  readonly reason: OpenReason;
}

/** In words. */
export const OPEN_WORDS: Readonly<Record<OpenReason, string>> = {
  not_available: "not available",
  not_known: "not known whether the server counts it",
  missing: "not loaded",
  failed: "failed",
  unverified: "access to the workspace is not proven",
  provisional: "provisional",
  open: "differs from the export",
  not_reconciled: "not reconciled with the export",
  platform_disagrees: "the platform's answers and its export differ",
  total_differs: "the platform's totals differ",
  tiers_differ: "the retention tiers do not add up",
  provider_differs: "the billing provider's total differs",
};

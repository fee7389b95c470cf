import type { DateTime } from "luxon";
import { DAY_MS } from "../../domain/time/stride.ts";
import { OPEN_REASONS, type OpenDay } from "../../store/report/month-open-days.ts";
import { instant, table } from "./output.ts";

type Reason = OpenDay["reason"];

/** What was asked to be closed, and what the printed commands need. */
interface Asked {
  readonly month: DateTime<true>;
  /** Workspaces that are left out already. */
  readonly without: readonly string[];
  readonly settleAfterMs: number;
  /** Without Redis a load runs in the process of the command. */
  readonly hasRedis: boolean;
}

/** What keeps a month open: as a table, then each step that helps, with the command that takes it. */
export function describeOpen(what: string, open: readonly OpenDay[], asked: Asked): string {
  const groups = Map.groupBy(open, (one) => `${one.reason} ${one.groupBy}`);
  const rows = [...groups.values()]
    .map((group) => ({ group, ...(group[0] as OpenDay), last: group.at(-1) as OpenDay }))
    .sort((a, b) => OPEN_REASONS.indexOf(a.reason) - OPEN_REASONS.indexOf(b.reason))
    .map(({ group, groupBy, reason, day, last }) => [
      ...[groupBy, WHAT[reason], group.length, instant(day), instant(last.day)],
    ]);
  const head = ["dimension", "what is open", "days x\nworkspaces", "first", "last"];
  return [`${what}: open`, table(head, rows), "What to do:", ...stepsOf(open, asked)].join("\n");
}

const WHAT: Readonly<Record<Reason, string>> = {
  not_available: "not available",
  missing: "not loaded",
  failed: "failed",
  unverified: "workspace access is not proven",
  provisional: "provisional",
  open: "differs from the export",
  not_reconciled: "not reconciled with the export",
  platform_disagrees: "platform's JSON and export differ",
  total_differs: "platform's totals differ",
};

/** The steps in the order in which they help. Steps for what a sync can read come first. */
function stepsOf(open: readonly OpenDay[], { month, without, settleAfterMs, hasRedis }: Asked): string[] {
  const readable = open.filter(isReadable);
  const has = (...reasons: Reason[]) => readable.some(({ reason }) => reasons.includes(reason));
  const [from, to] = [month.toISODate(), month.plus({ months: 1 }).toISODate()];
  const inlineFlags = hasRedis ? "" : " --inline";
  const loading = `\`usage-etl backfill --from ${from} --to ${to}${inlineFlags}\``;
  const name = month.toFormat("yyyy-MM");
  const withoutFlags = without.map((id) => ` --without ${id}`).join("");
  const steps: string[] = [];
  if (open.some(({ reason }) => reason === "not_available")) {
    steps.push("The platform does not answer in days, so the month cannot be closed.");
  }
  if (has("failed")) steps.push(`Load what failed: ${loading}. \`usage-etl status\` shows why it failed.`);
  else if (has("missing")) steps.push(`Load what is missing: ${loading}`);
  if (has("provisional")) {
    const last = Math.max(...readable.filter(({ reason }) => reason === "provisional").map(({ day }) => day));
    const final = instant(last + DAY_MS + settleAfterMs);
    steps.push(`Wait until ${final} (USAGE_SETTLE_AFTER), and load again what is provisional: ${loading}`);
  }
  if (has("open")) {
    steps.push(
      `Repair what differs from the export: \`usage-etl reconcile --from ${from} --to ${to} --repair\``,
    );
  } else if (has("not_reconciled", "missing", "failed", "provisional")) {
    steps.push(`Then reconcile with the export: \`usage-etl reconcile --from ${from} --to ${to}\``);
  }
  if (open.some(({ reason }) => reason === "platform_disagrees" || reason === "total_differs")) {
    steps.push(
      `Ask the platform about what differs there, or accept it: \`usage-etl close ${name} --accept-disagreements${withoutFlags}\``,
    );
  }
  const unreadable = new Map(open.filter((one) => !isReadable(one)).map((one) => [one.workspaceId, one]));
  for (const one of unreadable.values()) {
    const [problem, remedy] = WAYS_OUT[one.access];
    steps.push(
      `Workspace ${one.workspaceId} ${problem}. ${remedy} and load it: ${loading}. ` +
        `Or leave it out: \`usage-etl close ${name} --without ${one.workspaceId}${withoutFlags}\``,
    );
  }
  return steps.map((step) => `- ${step}`);
}

/** Whether a sync and a reconcile can do something about it. */
function isReadable({ access, reason }: OpenDay): boolean {
  return access === "read" && reason !== "unverified";
}

const WAYS_OUT: Readonly<Record<OpenDay["access"], readonly [problem: string, remedy: string]>> = {
  read: ["was not named in any answer lately", "Give the key access to it"],
  unlisted: ["left the platform's listing", "Give the key access to it again"],
  not_configured: ["is not configured any more", "Name it in USAGE_WORKSPACE_IDS again"],
};

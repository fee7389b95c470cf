import type { DateTime } from "luxon";
import { OPEN_REASONS, type OpenDay } from "../../store/report/month-open-days.ts";
import { instant, table } from "./output.ts";

/** What keeps a month open, with what helps: as a table, and a line for each workspace that a sync cannot load. */
export function describeOpen(what: string, open: readonly OpenDay[], month: DateTime<true>): string {
  const groups = Map.groupBy(open, (one) => `${one.reason} ${one.groupBy} ${isReadable(one)}`);
  const rows = [...groups.values()]
    .map((group) => ({ group, ...(group[0] as OpenDay), last: group.at(-1) as OpenDay }))
    .sort((a, b) => OPEN_REASONS.indexOf(a.reason) - OPEN_REASONS.indexOf(b.reason))
    .map(({ group, last, ...first }) => {
      const workspaces = new Set(group.map((one) => one.workspaceId)).size;
      return [
        first.groupBy,
        adviceOf(first, month),
        group.length,
        workspaces,
        instant(first.day),
        instant(last.day),
      ];
    });
  const head = ["dimension", "what is open", "days x workspaces", "workspaces", "first", "last"];
  const unreadable = new Map(
    open.filter((one) => !isReadable(one)).map((one) => [one.workspaceId, waysOut(one)]),
  );
  return [`${what}: open`, table(head, rows), ...unreadable.values()].join("\n");
}

/** Whether a sync and a reconcile can do something about it. */
function isReadable({ access, reason }: OpenDay): boolean {
  return access === "read" && reason !== "unverified";
}

const WHAT: Readonly<Record<OpenDay["reason"], string>> = {
  not_available: "not available",
  missing: "not loaded",
  failed: "failed",
  unverified: "workspace access is not proven",
  provisional: "provisional",
  open: "differs from the export",
  not_reconciled: "not reconciled with the export",
  platform_disagrees: "the platform's JSON and export differ",
  total_differs: "the platform's totals differ",
};

function adviceOf(one: OpenDay, month: DateTime<true>): string {
  // Without a range, reconcile goes back for USAGE_RECONCILE_FOR only.
  const reconcile = `run usage-etl reconcile --from ${month.toISODate()} --to ${month.plus({ months: 1 }).toISODate()}`;
  const accept = "ask the platform, or use --accept-disagreements";
  const next: Readonly<Record<OpenDay["reason"], string>> = {
    not_available: "the platform does not answer in days, so the month cannot be closed",
    missing: "run usage-etl sync",
    failed: "usage-etl status shows why; run usage-etl sync to ask again",
    unverified: "see below",
    provisional: "wait for USAGE_SETTLE_AFTER and the next sync",
    open: `${reconcile} --repair`,
    not_reconciled: reconcile,
    platform_disagrees: accept,
    total_differs: accept,
  };
  const canAccept = next[one.reason] === accept;
  return `${WHAT[one.reason]}: ${isReadable(one) || canAccept ? next[one.reason] : "see below"}`;
}

function waysOut({ access, workspaceId }: OpenDay): string {
  const [problem, remedy] = {
    read: ["was not named in any answer lately", "Give the key access to it and run `usage-etl sync`"],
    unlisted: ["left the platform's listing", "Give the key access to it again and run `usage-etl sync`"],
    not_configured: [
      "is not configured any more",
      "Name it in USAGE_WORKSPACE_IDS again, run `usage-etl sync`, and reconcile",
    ],
  }[access];
  return `Workspace ${workspaceId} ${problem}. ${remedy}, or leave it out: --without ${workspaceId}.`;
}

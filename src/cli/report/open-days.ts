import { type AskedClose, checkListOf, stepsOf } from "../../domain/close/check-list.ts";
import { DISAGREEMENTS, OPEN_WORDS, type OpenDay } from "../../domain/close/open-day.ts";
import { instant, table } from "./output.ts";

/** What keeps a month open: as a table, then each step that helps, with the command that takes it. */
export function describeOpen(what: string, open: readonly OpenDay[], asked: AskedClose): string {
  const steps = stepsOf(open, asked).map(({ text }) => `- ${text}`);
  return [...listOpen(what, open), "What to do:", ...steps].join("\n");
}

/** The same of a billing period, with the commands that load and prove its days. */
export function describeOpenPeriod(
  what: string,
  open: readonly OpenDay[],
  { start, end }: { start: string; end: string },
): string {
  const canAccept = open.every(({ reason }) => DISAGREEMENTS.includes(reason));
  const steps = canAccept
    ? [
        `Ask the platform about what differs there, or accept it: \`usage-etl close --period ${start} --accept-disagreements\``,
      ]
    : [
        `Load what is missing or provisional: \`usage-etl backfill --from ${start} --to ${end}\``,
        `Then reconcile with the export: \`usage-etl reconcile --from ${start} --to ${end} --repair\``,
      ];
  return [...listOpen(what, open), "What to do:", ...steps.map((step) => `- ${step}`)].join("\n");
}

function listOpen(what: string, open: readonly OpenDay[]): string[] {
  const rows = checkListOf(open).map(({ groupBy, reason, days, first, last }) => [
    ...[groupBy, OPEN_WORDS[reason], days, instant(first), instant(last)],
  ]);
  return [`${what}: open`, table(["dimension", "what is open", "days x\nworkspaces", "first", "last"], rows)];
}

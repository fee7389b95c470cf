import {
  type AskedClose,
  checkListOf,
  DISAGREEMENTS,
  OPEN_WORDS,
  type OpenDay,
  stepsOf,
} from "../../domain/months/check-list.ts";
import { METER_NAME, METERS, meterFlags } from "../../domain/usage/meter.ts";
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
  const meters = METERS.filter((meter) =>
    open.some((one) => one.meter === meter && !DISAGREEMENTS.includes(one.reason)),
  );
  const canAccept = open.every(({ reason }) => DISAGREEMENTS.includes(reason));
  const steps = canAccept
    ? [
        `Ask the platform about what differs there, or accept it: \`usage-etl close --period ${start} --accept-disagreements\``,
      ]
    : [
        ...meters.map((meter) => {
          const [of, tierFlags] =
            meter === "traces" ? ["", ""] : [` of ${METER_NAME[meter]}`, ` ${meterFlags(meter)}`];
          return `Load what is missing or provisional${of}: \`usage-etl backfill --from ${start} --to ${end}${tierFlags}\``;
        }),
        `Then reconcile with the export: \`usage-etl reconcile --from ${start} --to ${end} --repair\``,
      ];
  return [...listOpen(what, open), "What to do:", ...steps.map((step) => `- ${step}`)].join("\n");
}

function listOpen(what: string, open: readonly OpenDay[]): string[] {
  const hasOthers = open.some(({ meter }) => meter !== "traces");
  const rows = checkListOf(open).map(({ meter, groupBy, reason, days, first, last }) => [
    ...(hasOthers ? [METER_NAME[meter]] : []),
    ...[groupBy, OPEN_WORDS[reason], days, instant(first), instant(last)],
  ]);
  return [
    `${what}: open`,
    table(
      [...(hasOthers ? ["usage"] : []), "dimension", "what is open", "days x\nworkspaces", "first", "last"],
      rows,
    ),
  ];
}

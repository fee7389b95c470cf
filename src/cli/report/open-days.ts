import { type AskedClose, checkListOf, stepsOf } from "../../domain/close/check-list.ts";
import { OPEN_WORDS, type OpenDay } from "../../domain/close/open-day.ts";
import { instant, table } from "./output.ts";

/** What keeps a month open: as a table, then each step that helps, with the command that takes it. */
export function describeOpen(what: string, open: readonly OpenDay[], asked: AskedClose): string {
  const rows = checkListOf(open).map(({ groupBy, reason, days, first, last }) => [
    ...[groupBy, OPEN_WORDS[reason], days, instant(first), instant(last)],
  ]);
  const head = ["dimension", "what is open", "days x\nworkspaces", "first", "last"];
  const steps = stepsOf(open, asked).map(({ text }) => `- ${text}`);
  return [`${what}: open`, table(head, rows), "What to do:", ...steps].join("\n");
}

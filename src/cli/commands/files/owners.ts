import type { Command } from "commander";
import type { Config } from "../../../config/config.ts";
import { ruleFor, UNALLOCATED } from "../../../domain/bill/owner.ts";
import { daysText } from "../../../domain/months/month.ts";
import { addDays, addMonths, dayOf, monthStart } from "../../../domain/time/days.ts";
import { UsageError } from "../../../errors.ts";
import { applyOwners, type OwnersOutcome } from "../../../pipeline/bill/apply-owners.ts";
import { counted } from "../../../printable.ts";
import { appliedOwners, type OwnedPart, type OwnerChange, ownedParts } from "../../../store/bill/owners.ts";
import { storeNow } from "../../../store/load/fetch-ledger.ts";
import { linesOf, tableOf } from "../../report/output.ts";
import { withRange } from "../../session/options.ts";
import { commandActor, inSession, type Session } from "../../session/session.ts";
import { readOwnerFile } from "./owner-file.ts";

const FILE = ["[file]", "an owner file (docs/owners.md); default: USAGE_OWNERS_FILE"] as const;
/** What a person reads. `--json` has all. */
const ROWS_SHOWN = 40;

export function define(owners: Command): void {
  owners
    .command("plan")
    .argument(...FILE)
    .description(
      "show what an owner file would change, by month and owner, in traces and money; changes nothing",
    )
    .action(
      inSession((session: Session, _: object, file?: string) => apply(session, file, { isPlan: true })),
    );
  owners
    .command("apply")
    .argument(...FILE)
    .description(
      "put the rules of an owner file in the place of those that were applied last, all or nothing",
    )
    .action(
      inSession((session: Session, _: object, file?: string) => apply(session, file, { isPlan: false })),
    );
  owners
    .command("export")
    .description("print the owner file that was applied last, as it was")
    .action(inSession(exportFile));
  withRange(owners.command("suggest"))
    .description(
      "list what has usage and no owner, most expensive first; default: this month and the one before",
    )
    .action(inSession(suggest));
}

async function apply(
  { output, config, ...session }: Session,
  given: string | undefined,
  { isPlan }: { isPlan: boolean },
): Promise<undefined> {
  const file = given ?? fileOf(config);
  const owners = await readOwnerFile(file);
  const store = await session.migratedStore();
  const outcome = await applyOwners(store, { name: file, owners, by: isPlan ? undefined : commandActor() });
  output.data({ file, divideBy: owners.divideBy, ...outcome, isApplied: !isPlan }, () =>
    linesOf(
      `${file}: ${counted(outcome.rules, "rule")}; traces are divided by ${owners.divideBy}.`,
      describeOutcome(outcome, { isPlan }),
      isPlan && `Nothing was changed. \`usage-etl owners apply ${file}\` does it.`,
    ),
  );
}

function fileOf({ ownersFile }: Config): string {
  if (ownersFile !== undefined) return ownersFile;
  throw new UsageError({
    code: "owner_file_unset",
    message: "No owner file is given.",
    next: "Name one, or set USAGE_OWNERS_FILE. docs/owners.md shows how it is written.",
  });
}

function describeOutcome({ changes, idle }: OwnersOutcome, { isPlan }: { isPlan: boolean }): string {
  const newest = [...changes].sort((a, b) => (a.month < b.month ? 1 : a.month > b.month ? -1 : 0));
  const shown = newest.slice(0, ROWS_SHOWN);
  const hidden = newest.length - shown.length;
  const hasSources = new Set(changes.map(({ source }) => source)).size > 1;
  const hasCenters = changes.some(({ costCenter }) => costCenter !== "(none)");
  const closed = [
    ...new Set(changes.filter(({ isClosed }) => isClosed).map((one) => `${one.source} ${one.month}`)),
  ];
  return linesOf(
    changes.length === 0
      ? `No figure of an owner ${isPlan ? "would change" : "changed"}.`
      : tableOf(shown, {
          month: "month",
          source: hasSources && "source",
          owner: "owner",
          "cost centre": hasCenters && "costCenter",
          of: unitOf,
          before: ({ before, currency }) => shownDecimal(before, currency),
          after: ({ after, currency }) => shownDecimal(after, currency),
          change: ({ change, currency }) => shownDecimal(change, currency, true),
        }),
    hidden > 0 && `and ${hidden} more, of earlier months: --json lists all.`,
    closed.length > 0 &&
      `Closed months whose division ${isPlan ? "would change" : "changed"}, not their sum: ${closed.join(", ")}.`,
    idle.length > 0 &&
      `Rules that decide nothing now, since what they name is not known or earlier rules have it: ${idle.length === 1 ? "line" : "lines"} ${idle.join(", ")}.`,
  );
}

function unitOf({ currency }: Pick<OwnerChange, "currency">): string {
  return currency ?? "traces";
}

/** A decimal as people read it: money to the cent. */
export function shownDecimal(text: string, currency: string | null, isSigned = false): string {
  const digits =
    currency === null ? { maximumFractionDigits: 4 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return new Intl.NumberFormat("en-US", {
    ...digits,
    ...(isSigned ? { signDisplay: "exceptZero" } : {}),
  }).format(text as `${number}`);
}

async function exportFile({ output, ...session }: Session): Promise<undefined> {
  const { db } = await session.migratedStore();
  const applied = await appliedOwners(db);
  if (applied === undefined) {
    throw new UsageError({
      code: "owners_not_applied",
      message: "No owner file was applied yet, so nothing has an owner.",
      next: "`usage-etl owners suggest` lists what has usage. `usage-etl owners apply FILE` applies a file.",
    });
  }
  output.data(applied, ({ content }) => content.replace(/\n$/, ""));
}

async function suggest(
  { output, ...session }: Session,
  { from, to }: { from?: number; to?: number },
): Promise<undefined> {
  const { db } = await session.migratedStore();
  const today = dayOf(await storeNow(db));
  const range = {
    from: from === undefined ? addMonths(monthStart(today), -1) : dayOf(from),
    to: to === undefined ? addDays(today, 1) : dayOf(to),
  };
  const found = await ownedParts(db, { source: null, owner: UNALLOCATED, ...range, top: ROWS_SHOWN });
  output.data({ ...range, unallocated: found.map((one) => ({ ...one, rule: ruleFor(one) })) }, () =>
    found.length === 0
      ? `Everything that has usage in ${daysText(range)} has an owner.`
      : linesOf(
          `Without an owner in ${daysText(range)}, the most expensive first:`,
          tableOf(found, {
            traces: ({ traces }) => (traces === null ? null : shownDecimal(traces, null)),
            cost: found.some(({ costs }) => Object.keys(costs).length > 0) && costOf,
            workspace: ({ workspaceName, workspaceId }) => workspaceName ?? workspaceId,
            what: ({ dimension }) => dimension ?? "the rest",
            name: ({ name, id }) => name ?? id,
            tags: found.some(({ tags }) => tags.length > 0) && (({ tags }) => tags.join(", ")),
            "a rule for it": (one) => `- ${ruleFor(one)}`,
          }),
        ),
  );
}

function costOf({ costs }: OwnedPart): string {
  return Object.entries(costs)
    .map(([currency, cost]) => `${shownDecimal(cost, currency)} ${currency}`)
    .join(", ");
}

import { type Command, Option } from "commander";
import type { Config } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { counted, linesShown, printable, printableLine } from "../../core/base/printable.ts";
import { daysText, monthAt, monthTitle } from "../../core/domain/months/month.ts";
import { addDays, addMonths, dayOf, monthStart } from "../../core/domain/time/days.ts";
import { type Amount, amountCut, amountText } from "../../core/domain/usage/amount.ts";
import { usageSources } from "../../core/store/figures/sources.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { withRange } from "../../terminal/options.ts";
import { linesOf, shownDecimal, tableOf, toTheRight } from "../../terminal/output.ts";
import { commandActor, inSession, type Session } from "../../terminal/session.ts";
import { givenMonth, storedSources } from "../catalog/named.ts";
import { BYTE_ORDER_MARK, bomOption } from "../export/table-file.ts";
import { applyOwners, type OwnersOutcome } from "./apply-owners.ts";
import {
  budgetsOf,
  describeBudgeted,
  leastOf,
  type MonthBudget,
  monthBudgets,
  nameOfBudget,
} from "./budgets.ts";
import { ruleFor, UNALLOCATED } from "./owner.ts";
import type { OwnerChange } from "./owner-changes.store.ts";
import { ownerFileAsCsv, readOwnerFile } from "./owner-file.ts";
import { appliedOwners, type OwnedPart, ownedParts } from "./owners.store.ts";
import { routeProblem } from "./receiver.ts";

const ROWS_SHOWN = 40;
const SUGGESTED = 20;
const LONGEST_NAME = 30;
const LONGEST_SHOWN = 40;

export const examples = [
  ["owners plan owners.yaml", "what the file would change, in traces and money"],
  ["owners apply owners.yaml", "store it, all or nothing"],
  ["owners suggest", "what has usage and no owner"],
  ["owners budgets --source emea", "how its budgets stand, and those of all sources"],
] as const;

export function define(owners: Command): void {
  const about = {
    plan: "show what an owner file would change, by month and owner, without changing anything",
    apply: "replace the rules in force by those of an owner file, all or nothing",
  };
  for (const [name, description] of Object.entries(about)) {
    const run = (session: Session, _: object, file?: string) =>
      apply(session, file, { isPlan: name === "plan" });
    owners
      .command(name)
      .argument("[file]", "an owner file (docs/owners.md); default: USAGE_OWNERS_FILE")
      .description(description)
      .action(inSession(run));
  }
  owners
    .command("export")
    .description("print the owner file that is in force")
    .addOption(new Option("--format <format>", "as a table instead, without routes").choices(["csv"]))
    .addOption(bomOption({ format: "csv" }))
    .action(inSession(exportFile));
  owners
    .command("budgets")
    .argument("[month]", "such as 2026-10; default: the one under way")
    .option("--source <slug>", "only budgets of this source and of all sources")
    .description("show how much of each budget is used in a month, the forecast, and when it is used up")
    .action(inSession(budgets));
  withRange(owners.command("suggest"))
    .description("list usage without an owner, most expensive first; default: this month and the one before")
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
  // A missing secret is only reported, because the service may run elsewhere.
  const routeProblems = owners.routes.flatMap((route) => {
    const problem = routeProblem(route, config.routeSecrets);
    return problem === undefined
      ? []
      : [`Line ${route.line}: route ${route.name} cannot be sent to from here: ${problem}.`];
  });
  output.data({ file, divideBy: owners.divideBy, ...outcome, routeProblems, isApplied: !isPlan }, () =>
    linesOf(
      `${file}: ${counted(outcome.rules, "rule")}; traces are divided by ${owners.divideBy}.`,
      describeOutcome(outcome, { isPlan, routes: routeProblems }),
      isPlan
        ? `Nothing was changed. To put these rules in force, run \`usage-etl owners apply ${file}\`.`
        : "These rules are in force.",
    ),
  );
}

function fileOf({ ownersFile }: Config): string {
  if (ownersFile !== undefined) return ownersFile;
  throw new UsageError({
    code: "owner_file_unset",
    message: "No owner file is given.",
    next: "Name a file, or set USAGE_OWNERS_FILE. docs/owners.md shows how to write one.",
  });
}

function describeOutcome(
  { changes, idle, idleBudgets, routesOfNobody, namesForIds }: OwnersOutcome,
  { isPlan, routes }: { isPlan: boolean; routes: readonly string[] },
): string {
  const newest = changes.toSorted((a, b) => b.month.localeCompare(a.month));
  const shown = newest.slice(0, ROWS_SHOWN);
  const hidden = newest.length - shown.length;
  const months = new Set(changes.map(({ month }) => month));
  const together = changesTogether(changes);
  const hasSources = new Set(changes.map(({ source }) => source)).size > 1;
  const hasCenters = changes.some(({ costCenter }) => costCenter !== "(none)");
  const whose = {
    source: hasSources && "source",
    owner: "owner",
    "cost centre": hasCenters && "costCenter",
    unit: unitOf,
  } as const;
  const closed = [
    ...new Set(changes.filter(({ isClosed }) => isClosed).map((one) => `${one.source} ${one.month}`)),
  ].sort();
  return linesOf(
    closed.length > 0 &&
      `Closed months keep their totals, but their division ${isPlan ? "would change" : "changed"}: ${closed.join(", ")}.`,
    idle.length > 0 &&
      `These rules have no effect now, because nothing matches them or earlier rules match all of it: ${linesShown(idle)}.`,
    idleBudgets.length > 0 &&
      `These budgets count nothing now, because their subject is unknown, or nothing has a price in their currency: ${linesShown(idleBudgets)}.`,
    routesOfNobody.map(
      ({ line, route, owners }) =>
        `Line ${line}: route ${route} is for ${owners.join(" and ")}, but no rule of the owner file in force assigns usage to such an owner.`,
    ),
    routes,
    namesForIds.map(
      ({ line, dimension, given, ids }) =>
        `Line ${line}: ${JSON.stringify(given)} is the name of a ${dimension.replace("_", " ")}. Write its id: ${ids.join(" or ")}.`,
    ),
    changes.length === 0
      ? `No figure of an owner ${isPlan ? "would change" : "changed"}.`
      : tableOf(shown, {
          month: "month",
          ...whose,
          before: toTheRight(shown, ({ before, currency }) => shownDecimal(before, currency)),
          after: toTheRight(shown, ({ after, currency }) => shownDecimal(after, currency)),
          change: toTheRight(shown, ({ change, currency }) => shownDecimal(change, currency, true)),
        }),
    hidden > 0 && `and ${hidden} more: --json lists all.`,
    months.size > 1 && [
      `All ${months.size} months together:`,
      tableOf(together.slice(0, ROWS_SHOWN), {
        ...whose,
        months: "months",
        change: toTheRight(together, ({ change, currency }) => shownDecimal(change, currency, true)),
      }),
      together.length > ROWS_SHOWN && `and ${together.length - ROWS_SHOWN} more`,
    ],
  );
}

function changesTogether(changes: readonly OwnerChange[]) {
  const ofWhom = Map.groupBy(changes, ({ source, owner, costCenter, currency }) =>
    JSON.stringify([source, owner, costCenter, currency]),
  );
  const together = [...ofWhom.values()].map((of) => ({
    ...(of[0] as OwnerChange),
    months: of.length,
    sum: of.reduce((sum, { change }) => sum + amountCut(change), 0n),
  }));
  const sizeOf = ({ sum }: { sum: Amount }) => (sum < 0n ? -sum : sum);
  return together
    .sort(
      (a, b) =>
        a.source.localeCompare(b.source) ||
        (a.currency ?? "").localeCompare(b.currency ?? "") ||
        Number(sizeOf(a) < sizeOf(b)) - Number(sizeOf(a) > sizeOf(b)),
    )
    .map(({ sum, ...one }) => ({ ...one, change: amountText(sum) }));
}

function unitOf({ currency }: Pick<OwnerChange, "currency">): string {
  return currency ?? "traces";
}

async function exportFile(
  { output, ...session }: Session,
  { format, bom }: { format?: "csv"; bom?: boolean },
): Promise<undefined> {
  const { db } = await session.migratedStore();
  const applied = await appliedOwners(db);
  if (applied === undefined) {
    throw new UsageError({
      code: "owners_not_applied",
      message: "No owner file has been applied yet, so no usage has an owner.",
      next: "Run `usage-etl owners suggest` to list what has usage, and `usage-etl owners apply FILE` to apply a file.",
    });
  }
  if (output.json) return output.data(applied, () => "");
  // A file gets the exact text, a terminal no control characters.
  const { csv, left } =
    format === undefined ? { csv: applied.content, left: [] } : ownerFileAsCsv(applied.content);
  const content = `${bom ? BYTE_ORDER_MARK : ""}${csv}`;
  for (const one of left) output.note(one);
  process.stdout.write(process.stdout.isTTY ? printable(content) : content);
}

async function budgets(
  { output, ...session }: Session,
  { source }: { source?: string },
  given?: string,
): Promise<undefined> {
  const { db } = await session.migratedStore();
  const now = await storeNow(db);
  const month = given === undefined ? monthAt(now) : givenMonth(given);
  if (source !== undefined) {
    const stored = await usageSources(db);
    storedSources(
      stored.map(({ slug }) => ({ source: slug })),
      source,
    );
  }
  const all = await monthBudgets(db, { month, now });
  const found = source === undefined ? all : budgetsOf(all, source);
  const data = found.map(({ spent, final, ...one }) => ({
    ...one,
    // Null: unknown billing period, not zero.
    percent: one.period === null ? null : one.percent,
    spent: one.period === null ? null : amountText(spent),
    final: one.period === null ? null : amountText(final),
  }));
  output.data(data, () => {
    if (all.length === 0) return "No budget is set. An owner file may have some: see docs/owners.md.";
    if (found.length === 0)
      return `No budget counts source ${source}: those that are set are of other sources.`;
    const shown = (text: string | null, currency: string | null) =>
      text === null ? "-" : shownDecimal(text, currency);
    const ofMonth = found.find(({ per }) => per === "month");
    return linesOf(
      `Budgets of ${monthTitle(month)}${ofMonth === undefined || ofMonth.isOver ? "" : `, of which ${ofMonth.percentOfTime} % is over`}:`,
      tableOf(data, {
        "budget of": all.some(({ source }) => source !== null) ? nameOfBudget : describeBudgeted,
        "billing period": found.some(({ per }) => per !== "month") && periodOf,
        in: unitOf,
        budget: toTheRight(data, ({ amount, currency }) => shown(amount, currency)),
        spent: toTheRight(data, ({ spent, currency, ...one }) =>
          spent === null ? "-" : `${leastOf(one)}${shown(spent, currency)}`,
        ),
        final: toTheRight(data, ({ final, currency }) => shown(final, currency)),
        forecast: toTheRight(data, ({ forecast, currency }) =>
          shown(forecast === null ? null : forecast.toFixed(currency === null ? 0 : 2), currency),
        ),
        "% used": toTheRight(data, ({ percent }) => (percent === null ? "-" : String(percent))),
        "used up": ({ reached, isPriced, currency, period }) => {
          if (period === null) return "no such period is known";
          if (reached !== null) return reached.isSure ? reached.day : `(${reached.day})`;
          return isPriced ? "" : `nothing has a price in ${currency}`;
        },
      }),
      found.some(({ reached }) => reached?.isSure === false) && "In brackets: by the forecast.",
    );
  });
}

function periodOf({
  per,
  period,
  percentOfTime,
}: Pick<MonthBudget, "per" | "period" | "percentOfTime">): string {
  return per === "month" || period === null ? "-" : `${daysText(period)} (${percentOfTime} %)`;
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
  const found = await ownedParts(db, {
    source: null,
    owner: UNALLOCATED,
    top: Number.MAX_SAFE_INTEGER,
    ...range,
  });
  const shown = found.slice(0, SUGGESTED);
  const hidden = found.length - shown.length;
  output.data({ ...range, unallocated: found.map((one) => ({ ...one, rule: ruleFor(one) })) }, () =>
    found.length === 0
      ? `Nothing that is loaded in ${daysText(range)} has usage and no owner.`
      : linesOf(
          `Without an owner in ${daysText(range)}, the most expensive first:`,
          describeUnallocated(shown),
          hidden > 0 && `and ${hidden} more: --json lists all.`,
          "",
          "Rules for an owner file. Replace TEAM with the team that pays. The first rule that matches",
          "decides, so those of whole workspaces come last.",
          // Parts that the list leaves out follow the rule of their workspace.
          rulesFor([...shown, ...found.slice(SUGGESTED).map(wholeWorkspace)]).map((line) => `  ${line}`),
        ),
  );
}

function describeUnallocated(found: readonly OwnedPart[]): string {
  const hasCosts = found.some(({ costs }) => Object.keys(costs).length > 0);
  const hasWorkspaces = new Set(found.map(({ workspaceId }) => workspaceId)).size > 1;
  return tableOf(found, {
    traces: toTheRight(found, ({ traces }) => (traces === null ? "-" : shownDecimal(traces, null))),
    cost: hasCosts && toTheRight(found, costOf),
    workspace: hasWorkspaces && (({ workspaceName, workspaceId }) => workspaceName ?? workspaceId),
    what: ({ dimension }) => dimension ?? "the rest",
    name: ({ name, id }) => cutName(name ?? id, LONGEST_SHOWN),
    tags:
      found.some(({ tags }) => tags.length > 0) &&
      (({ tags }) => tags.map(({ key, value }) => `${key}=${value}`).join(", ")),
  });
}

function costOf({ costs }: OwnedPart): string {
  const all = Object.entries(costs).map(([currency, cost]) => `${shownDecimal(cost, currency)} ${currency}`);
  return all.length === 0 ? "-" : all.join(", ");
}

function cutName(text: string, longest: number): string {
  const shown = printableLine(text.trim());
  return shown.length > longest ? `${shown.slice(0, longest - 1)}…` : shown;
}

function wholeWorkspace(part: OwnedPart): OwnedPart {
  return { ...part, dimension: null, name: null, tags: [] };
}

function rulesFor(found: readonly OwnedPart[]): string[] {
  const lines = new Map<string, string>();
  for (const one of [...found].sort((a, b) => Number(a.dimension === null) - Number(b.dimension === null))) {
    const rule = ruleFor(one);
    const about = one.tags.length > 0 ? "" : ((one.dimension === null ? one.workspaceName : one.name) ?? "");
    const cut = cutName(about, LONGEST_NAME);
    if (!lines.has(rule)) lines.set(rule, `- ${rule}${cut === "" ? "" : ` # ${cut}`}`);
  }
  return [...lines.values()];
}

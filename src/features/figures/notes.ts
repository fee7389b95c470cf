import { counted } from "../../core/base/printable.ts";
import { monthTitle } from "../../core/domain/months/month.ts";
import { addDays, type Days, dayOf, daysBetween } from "../../core/domain/time/days.ts";
import { amountOf, centsShown } from "../../core/domain/usage/amount.ts";
import { STANDARD_UNITS } from "../../core/domain/usage/meter.ts";
import type { Database } from "../../core/store/db/database.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import { closedMonths } from "../../core/store/months/closes.ts";
import { address, capital, type Html, html, notice, percent, plainName, prose } from "../../web/parts.ts";
import { laterCosts } from "../costs/closed-costs.store.ts";
import { changedMonths } from "../costs/month-adjustments.store.ts";
import { describeUnpricedDays } from "../costs/price.ts";
import { addressOf, COUNTED_WORDS, idWord, NO_INVOICE, type Question } from "./question.ts";
import type { Report } from "./report.ts";
import { intervalsShown } from "./tables.ts";

export interface Note {
  readonly kind: "info" | "warn";
  readonly text: string;
  readonly link?: readonly [text: string, to: string];
}

export function noteShown({ kind, text, link }: Note): Html {
  return notice(
    kind,
    html`<p>${prose(text)}${link !== undefined && html` <a href="${link[1]}">${link[0]}</a>`}</p>`,
  );
}

const MOST_WORKSPACES = 5;
const MUCH = 20;

export async function notesOf(db: Database, report: Report): Promise<Note[]> {
  const { question, workspaces } = report;
  if (workspaces === 0)
    return [
      {
        kind: "warn",
        text: "No workspace of this source is known yet. `usage-etl sync --inline` loads its usage.",
      },
    ];
  const notes = [
    question.measure === "spend_usd" ? info(NO_INVOICE) : undefined,
    question.perNote === undefined ? undefined : info(question.perNote),
    beginning(question),
    notLoadedIn(report),
    undivided(report),
    report.provisional.length === 0 ? undefined : info(`Provisional: ${intervalsShown(report.provisional)}.`),
    report.total.sum.isUnderWay ? underWay(question) : undefined,
    hoursUnproved(report),
    costsProvisional(report),
    ofNobody(report),
    withoutPrice(report),
    ...(await sinceCloses(db, question)),
    await dividedNow(db, question),
  ];
  return notes.filter((one) => one !== undefined);
}

function info(text: string, link?: Note["link"]): Note {
  return { kind: "info", text, ...(link && { link }) };
}

function beginning({ requested, source, measure }: Question): Note | undefined {
  if (requested.from >= source.dataStart) return undefined;
  const what = measure === "cost" || measure === "traces" ? "Usage" : capital(COUNTED_WORDS[measure]);
  return info(`${what} of ${source.slug} begins on ${source.dataStart}. Earlier usage is not shown.`);
}

function notLoadedIn({ question, gaps, workspaces }: Report): Note | undefined {
  if (gaps.length === 0) return undefined;
  const { range, source, by, measure } = question;
  const dimension = measure === "cost" || by === "owner" ? "workspace" : by;
  const isStandard = STANDARD_UNITS.some((one) => one === measure);
  const named = gaps
    .slice(0, MOST_WORKSPACES)
    .map((gap) => `${plainName(gap.name ?? gap.workspaceId)}: ${intervalsShown(gap.missing)}`);
  const left = gaps.length - named.length;
  const coverage = address("/coverage", {
    source: source.slug,
    stride: "day",
    ...range,
    group_by: dimension,
    workspace: gaps.length === 1 ? gaps[0]?.workspaceId : undefined,
  });
  return {
    kind: "warn",
    text: `Incomplete: ${counted(daysMissing(gaps), "day")} not ${isStandard ? "given by the platform" : "loaded"} by ${idWord({ by: dimension, measure })}. ${named.join("; ")}${left > 0 ? `; ${left} more of ${workspaces} workspaces` : ""}.`,
    // The coverage page shows traces of all tiers only.
    ...((measure === "cost" || measure === "traces") && { link: ["Data health", coverage] as const }),
  };
}

function daysMissing(gaps: Report["gaps"]): number {
  const all = gaps.flatMap(({ missing }) => missing);
  return new Set(all.flatMap(({ start, end }) => daysOf({ from: dayOf(start), to: dayOf(end - 1) }))).size;
}

function daysOf({ from, to }: Days): string[] {
  return Array.from({ length: daysBetween({ from, to }) + 1 }, (_, n) => addDays(from, n));
}

function undivided({ divided }: Report): Note | undefined {
  if (divided === undefined || divided.missing.length === 0) return undefined;
  return {
    kind: "warn",
    text: `Not loaded by ${DIMENSIONS[divided.by].title}: ${intervalsShown(divided.missing)}. On these days all traces go to the workspace's default team.`,
  };
}

function underWay(question: Question): Note {
  const { range, ended, today } = question;
  const text = "Today is incomplete.";
  if (ended.to < range.to) return info("Today is incomplete and left out of changes.");
  return range.from < today ? info(text, ["Leave it out", addressOf(question, { to: today })]) : info(text);
}

function hoursUnproved({ question, total }: Report): Note | undefined {
  if (question.per !== "hour" || !total.sum.isFinal || total.sum.isProved) return undefined;
  return info("Some of these hours are not compared yet.", [
    "View days",
    addressOf(question, { per: "day" }),
  ]);
}

function costsProvisional({ question, total, provisional }: Report): Note | undefined {
  const { isComplete, isFinal, isUnderWay } = total.sum;
  const isSaidAlready = provisional.length > 0 || isUnderWay;
  if (question.measure !== "cost" || !isComplete || isFinal || isSaidAlready) return undefined;
  return info("Costs are provisional until all earlier days of the month are final.");
}

function ofNobody({ question, lines }: Report): Note | undefined {
  const { by, measure } = question;
  const apart = lines.find(({ kind }) => kind === "none");
  if (measure !== "cost" || apart === undefined || (apart.share ?? 0) < MUCH) return undefined;
  const why = by === "owner" ? "no rule matches" : "sandboxes and traces without one";
  return info(`${percent(apart.share)} of the cost has no ${idWord({ by, measure })} (${why}).`);
}

function withoutPrice(report: Report): Note | undefined {
  const unpriced = describeUnpricedDays(report.unpriced);
  if (unpriced === undefined) return undefined;
  return {
    kind: "warn",
    text: `No price: ${unpriced}. These costs leave them out. \`usage-etl export --view usage_unpriced_daily\` lists them.`,
  };
}

/** Readers must not mix the two: traces are current, but costs of a closed month are those of its close. */
async function sinceCloses(db: Database, question: Question): Promise<Note[]> {
  const { source, workspace, measure, currency, range } = question;
  const about = { sourceId: source.sourceId, ...range, workspace: workspace?.key };
  const link = (month: string) =>
    ["View the bill", address(`/months/${month}`, { source: source.slug })] as const;
  if (measure === "cost") {
    const later = await laterCosts(db, about);
    return later
      .filter((one) => one.currency === currency && Number(one.more) !== 0)
      .map(({ month, more }) => {
        const by = `${centsShown(amountOf(more.replace("-", "")))} ${currency} ${more.startsWith("-") ? "less" : "more"}`;
        return info(
          `${monthTitle({ start: month })} costs ${by} now than at the close. This page shows the close.`,
          link(month),
        );
      });
  }
  if (measure !== "traces") return [];
  const changed = await changedMonths(db, about);
  return changed.map(({ month, closedTraces, netTraces, hasCosts }) => {
    return info(
      `${monthTitle({ start: month })} closed with ${counted(closedTraces, "trace")}; ${Math.abs(netTraces).toLocaleString("en-US")} ${netTraces > 0 ? "more" : "fewer"} since. Traces are current${hasCosts ? ", cost is as closed" : ""}.`,
      link(month),
    );
  });
}

async function dividedNow(db: Database, { by, source, range }: Question): Promise<Note | undefined> {
  if (by !== "owner") return undefined;
  const closed = await closedMonths(db, { sourceId: source.sourceId, ...range });
  if (closed.length === 0) return undefined;
  return info("Closed months are divided by today's rules, not by those at the close.");
}

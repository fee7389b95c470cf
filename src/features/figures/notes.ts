import { counted } from "../../core/base/printable.ts";
import { monthTitle } from "../../core/domain/months/month.ts";
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
    report.provisional.length === 0
      ? undefined
      : info(`Provisional, so it may still change: ${intervalsShown(report.provisional)}.`),
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
    text: `The totals are not complete: a part of the range is not ${isStandard ? "given by the platform" : "loaded"} by ${idWord({ by: dimension, measure })}. Missing is not zero. ${named.join("; ")}${left > 0 ? `; and parts of ${left} more of ${workspaces} workspaces` : ""}.`,
    // The coverage page shows traces of all tiers only.
    ...((measure === "cost" || measure === "traces") && { link: ["See the coverage", coverage] as const }),
  };
}

function undivided({ divided }: Report): Note | undefined {
  if (divided === undefined || divided.missing.length === 0) return undefined;
  return {
    kind: "warn",
    text: `Not loaded by ${DIMENSIONS[divided.by].title}: ${intervalsShown(divided.missing)}. There, all traces go to the owner of the rest of the workspace.`,
  };
}

function underWay(question: Question): Note {
  const { range, ended, today } = question;
  const text = `${today} is under way: its figures grow until it ends.`;
  if (ended.to < range.to) return info(`${text} Changes are those of the days before it.`);
  return range.from < today
    ? info(text, [
        "Leave it out, to compare whole days with earlier ones",
        addressOf(question, { to: today }),
      ])
    : info(text);
}

function hoursUnproved({ question, total }: Report): Note | undefined {
  if (question.per !== "hour" || !total.sum.isFinal || total.sum.isProved) return undefined;
  return info("Hours are compared apart from days, and some of these are not yet.", [
    "By day they may be proved",
    addressOf(question, { per: "day" }),
  ]);
}

function costsProvisional({ question, total, provisional }: Report): Note | undefined {
  const { isComplete, isFinal, isUnderWay } = total.sum;
  const isSaidAlready = provisional.length > 0 || isUnderWay;
  if (question.measure !== "cost" || !isComplete || isFinal || isSaidAlready) return undefined;
  return info("Costs are provisional where an earlier day of their month is: it may shift the volume tiers.");
}

function ofNobody({ question, lines }: Report): Note | undefined {
  const { by, measure } = question;
  const apart = lines.find(({ kind }) => kind === "none");
  if (measure !== "cost" || apart === undefined || (apart.share ?? 0) < MUCH) return undefined;
  const why =
    by === "owner"
      ? "no rule matches it"
      : "it is from traces without one, or from usage that the platform counts without it, such as sandboxes";
  return info(`${percent(apart.share)} of this cost has no ${idWord({ by, measure })}: ${why}.`);
}

function withoutPrice(report: Report): Note | undefined {
  const unpriced = describeUnpricedDays(report.unpriced);
  if (unpriced === undefined) return undefined;
  return {
    kind: "warn",
    text: `${unpriced} have no valid price, or their month was closed without their cost, so these costs leave them out. \`usage-etl export --view usage_unpriced_daily\` lists them.`,
  };
}

/** Readers must not mix the two: traces are current, but costs of a closed month are those of its close. */
async function sinceCloses(db: Database, question: Question): Promise<Note[]> {
  const { source, workspace, measure, currency, range } = question;
  const about = { sourceId: source.sourceId, ...range, workspace: workspace?.key };
  const link = (month: string) =>
    ["See the close", address(`/months/${month}`, { source: source.slug })] as const;
  if (measure === "cost") {
    const later = await laterCosts(db, about);
    return later
      .filter((one) => one.currency === currency && Number(one.more) !== 0)
      .map(({ month, more }) => {
        const by = `${centsShown(amountOf(more.replace("-", "")))} ${currency} ${more.startsWith("-") ? "less" : "more"}`;
        return info(
          `The requested usage of ${monthTitle({ start: month })} costs ${by} now than when it was closed. These costs are those of the close: bills of later months have the difference as corrections.`,
          link(month),
        );
      });
  }
  if (measure !== "traces") return [];
  const changed = await changedMonths(db, about);
  return changed.map(({ month, closedTraces, netTraces, hasCosts }) => {
    const whose = workspace === undefined ? "all workspaces" : "this workspace";
    return info(
      `${monthTitle({ start: month })} was closed with ${counted(closedTraces, "trace")} of ${whose}. ${Math.abs(netTraces).toLocaleString("en-US")} ${netTraces > 0 ? "more" : "fewer"} are counted since then, and these are today's figures.${hasCosts ? " Its costs are those of the close." : ""}`,
      link(month),
    );
  });
}

async function dividedNow(db: Database, { by, source, range }: Question): Promise<Note | undefined> {
  if (by !== "owner") return undefined;
  const closed = await closedMonths(db, { sourceId: source.sourceId, ...range });
  if (closed.length === 0) return undefined;
  return info("A closed month is divided by today's rules, which may differ from those at its close.");
}

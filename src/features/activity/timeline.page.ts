import { z } from "zod";
import { describeDuration } from "../../core/base/clock.ts";
import { counted, withoutAddresses } from "../../core/base/printable.ts";
import { describeRestatements, meteredName } from "../../core/domain/proof/restatement.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { outcomeOf } from "../../core/pipeline/as-run.ts";
import { listSources } from "../../core/store/activity/overview.ts";
import { type Run, type RunOutcome, runsById } from "../../core/store/activity/run-history.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import { RUN_KINDS } from "../../core/store/work/runs.ts";
import {
  ALL,
  address,
  capital,
  chips,
  choice,
  cursorField,
  cursorText,
  filterBar,
  type Html,
  hidden,
  html,
  instant,
  name,
  optional,
  prose,
  signed,
  sourceUnknown,
  table,
} from "../../web/parts.ts";
import { ALL_SOURCES } from "../../web/place.ts";
import { rangeText } from "../../web/query.ts";
import type { Web } from "../../web/routes.ts";
import { changeWords } from "../costs/logged-changes.ts";
import { listMoments, type Moment, TIMELINE_KINDS, type TimelineKind } from "./timeline.store.ts";

const ON_A_PAGE = 50;
const SIGNS = { ok: "●", failed: "✕", missing: "!", provisional: "◐", "": "·" } as const;

/** Runs that would hide the rest. */
const ROUTINE: readonly TimelineKind[] = ["sync"];

const query = z.object({
  source: optional(z.string().max(63)),
  kind: optional(z.enum(TIMELINE_KINDS)),
  syncs: optional(z.literal("1")),
  before: cursorField(z.tuple([z.iso.datetime({ precision: 6 }), z.enum(TIMELINE_KINDS), z.int().min(0)])),
});

export function addTimeline(web: Web): void {
  web.page(
    "/timeline",
    { query, header: { all: true } },
    async ({ db, query: requested, masked, config }) => {
      const { source, kind, syncs, before } = requested;
      const sources = (await listSources(db)).map((one) => one.source);
      if (source !== undefined && !sources.includes(source)) throw sourceUnknown(source, sources);
      const all = TIMELINE_KINDS.filter((one) => syncs === "1" || !ROUTINE.includes(one));
      const kinds = kind === undefined ? all : [kind];
      const moments = await listMoments(db, { source, kinds, before, most: ON_A_PAGE + 1 });
      const shown = moments.slice(0, ON_A_PAGE);
      const runs = await runsById(
        db,
        shown.filter(isRun).map(({ id }) => id),
      );
      const byId = new Map(runs.map((run) => [run.runId, run]));
      const last = moments.length > ON_A_PAGE ? shown.at(-1) : undefined;
      const here = (fields: Readonly<Record<string, string | undefined>>) =>
        address("/timeline", { source, kind, syncs, ...fields });
      const older = last && cursorText([last.at, last.kind, last.id]);
      return {
        title: "Timeline",
        about: `Runs and restatements are kept ${counted(Math.round(config.keepHistoryMs / DAY_MS), "day")}; everything else stays.`,
        body: html`${filterForm(source, kind, syncs)}
        ${chips([
          ...(kind === undefined
            ? []
            : [{ label: capital(KIND_WORDS[kind]), without: here({ kind: undefined }) }]),
          ...(syncs === undefined ? [] : [{ label: "With syncs", without: here({ syncs: undefined }) }]),
        ])}
        ${shown.length === 0 ? html`<p>No matching entries.</p>` : list(shown, { byId, masked, hasSources: sources.length > 1 && source === undefined })}
        <p class="paging">${before !== undefined && html`<a href="${here({})}">Newest entries</a>`}
        ${older !== undefined && html`<a href="${here({ before: older })}">Older entries</a>`}</p>`,
      };
    },
  );
}

function isRun({ kind }: Moment): boolean {
  return (RUN_KINDS as readonly TimelineKind[]).includes(kind);
}

function filterForm(source: string | undefined, kind: string | undefined, syncs: string | undefined): Html {
  const kinds = TIMELINE_KINDS.map((value) => ({ value, text: capital(KIND_WORDS[value]) }));
  return filterBar(
    "/timeline",
    html`${hidden({ source: source ?? ALL_SOURCES })}${choice("Type", "kind", [ALL, ...kinds], kind ?? "")}
      <label><input type="checkbox" name="syncs" value="1" ${syncs === "1" && "checked"}> Show syncs</label>`,
  );
}

function list(
  moments: readonly Moment[],
  given: { byId: ReadonlyMap<number, Run>; masked: boolean; hasSources: boolean },
): Html {
  const { byId, masked, hasSources } = given;
  return table({
    kind: "two timeline",
    label: "Timeline",
    caption: "Newest first",
    heads: ["Time", ...(hasSources ? ["Source"] : []), "Type", "What", "Who"],
    rows: moments.map((moment) => {
      const run = isRun(moment) ? byId.get(moment.id) : undefined;
      const { what, to, who, tone } = entryOf(moment, run, masked);
      const word = capital(KIND_WORDS[moment.kind]);
      return html`<tr><th scope="row">${instant(moment.at)}</th>
        ${hasSources && html`<td class="opt">${moment.source === null ? "all" : name(moment.source)}</td>`}
        <td class="lead">${to === undefined ? word : html`<a href="${to}">${word}</a>`}</td>
        <td class="action"><span class="status ${tone}" aria-hidden="true">${SIGNS[tone]}</span> ${what}</td>
        <td class="action">${who !== undefined && name(who)}</td></tr>`;
    }),
  });
}

const KIND_WORDS: Readonly<Record<TimelineKind, string>> = {
  sync: "sync",
  backfill: "backfill",
  reconcile: "reconciliation",
  totals: "check of totals",
  files: "files",
  restatements: "restatements",
  late_changes: "late changes",
  close: "month closed",
  prices: "prices imported",
  action: "action",
  configuration: "configuration",
  platform_change: "platform setting",
};

interface Entry {
  readonly what: Html | string;
  readonly to?: string | undefined;
  readonly who?: string | undefined;
  readonly tone: "ok" | "failed" | "provisional" | "missing" | "";
}

const TONES: Readonly<Record<RunOutcome, Entry["tone"]>> = {
  running: "provisional",
  paused: "provisional",
  done: "ok",
  partly_failed: "missing",
  differs: "missing",
  failed: "failed",
  skipped: "missing",
  cancelled: "",
  lost: "failed",
};

function entryOf(moment: Moment, run: Run | undefined, masked: boolean): Entry {
  const source = moment.source ?? undefined;
  switch (moment.kind) {
    case "restatements": {
      const { counts } = moment.details;
      const nets = counts
        .filter(({ ofDays }) => ofDays > 0)
        .map((one) => `${counted(one.ofDays, "day")} restated: ${signed(one.net)} ${meteredName(one)}`);
      return {
        what: nets.length > 0 ? nets.join("; ") : `${describeRestatements(counts)} restated`,
        to: address("/differences", { source, says: "restatement" }),
        tone: "missing",
      };
    }
    case "late_changes": {
      const { changes, tracesMoved } = moment.details;
      const from = moment.at.slice(0, 10);
      return {
        what: `${counted(changes, "provisional day")} changed, ${tracesMoved.toLocaleString("en-US")} traces moved`,
        to: address("/coverage", { source, stride: "day", from }),
        tone: "",
      };
    }
    case "close": {
      const { month, accepted, by } = moment.details;
      const also = accepted === 0 ? "" : `, with ${counted(accepted, "disagreement")} accepted`;
      return {
        what: `${month} was closed${also}.`,
        to: address(`/months/${month.slice(0, 7)}`, { source }),
        who: person(by, masked),
        tone: "ok",
      };
    }
    case "prices": {
      const { prices, skus } = moment.details;
      return {
        what: html`${counted(prices, "price")} of ${skus.slice(0, 5).map((sku) => html`${name(sku)} `)} ${skus.length > 5 && `and ${skus.length - 5} more`}`,
        to: address("/usage", { source, measure: "cost" }),
        tone: "",
      };
    }
    case "action": {
      const { action, detail, outcome } = moment.details;
      const what = html`${action}: ${name(withLastDay(detail))}${outcome !== "done" && `, ${outcome}`}`;
      const tone = ({ done: "", refused: "missing", failed: "failed" } as const)[outcome];
      return { what, to: actionLink(action, detail, source), who: person(moment.details, masked), tone };
    }
    case "configuration":
      return { what: changeOf(moment.details), to: address("/coverage", { source }), tone: "" };
    case "platform_change": {
      const { workspace, userId, userName } = moment.details;
      const what = html`${capital(changeWords(moment.details))}${workspace !== null && html` in workspace ${name(workspace)}`}.`;
      const who = userId === null ? undefined : ((masked ? null : userName) ?? `user ${userId}`);
      return { what, to: address(`/months/${moment.at.slice(0, 7)}`, { source }), who, tone: "" };
    }
    default:
      return run === undefined ? { what: "It is not stored any more.", tone: "" } : ofRun(run, masked);
  }
}

function ofRun(run: Run, masked: boolean): Entry {
  const { outcome, reason, code, seconds, requests, runId } = run;
  // The time of a paused run goes on and does not measure its work.
  const took =
    outcome === "paused"
      ? ""
      : `, ${outcome === "running" ? "for" : "in"} ${describeDuration(seconds * 1000)}`;
  const requested = requests === null ? "" : `, ${counted(requests, "request")}`;
  const why =
    reason === null
      ? ""
      : html`. ${prose(masked ? withoutAddresses(reason) : reason)}${code !== null && ` [${code}]`}`;
  const what = html`run ${runId}: ${outcomeOf(run)}${took}${requested}${why}`;
  return { what, to: runLink(run), tone: TONES[outcome] };
}

function runLink({ kind, source, backfillId }: Run): string | undefined {
  if (backfillId !== null) return `/backfills/${backfillId}`;
  if (kind === "reconcile" || kind === "totals") return address("/differences", { source });
  return kind === "files" ? undefined : address("/coverage", { source });
}

/** The audit record has a range with an exclusive end. Here the last day is included, as on other pages. */
function withLastDay(detail: string): string {
  return detail.replace(
    /(\d{4}-\d\d-\d\d\S*) to (\d{4}-\d\d-\d\d\S*)(?= by )/,
    (text, from: string, to: string) => {
      const [start, end] = [Date.parse(from), Date.parse(to)];
      return start < end ? rangeText({ start, end }) : text;
    },
  );
}

function actionLink(action: string, detail: string, source: string | undefined): string | undefined {
  const [, backfill] = /^backfill (\d+):/.exec(detail) ?? [];
  if (backfill !== undefined) return `/backfills/${backfill}`;
  if (action === "sync.start") return address("/coverage", { source });
  if (action === "reconcile.repair") return address("/differences", { source });
  const [, month] = /^(\d{4}-\d{2}):/.exec(detail) ?? [];
  if (action.startsWith("month.") && month !== undefined) return address(`/months/${month}`, { source });
  return undefined;
}

function person(
  by: { readonly actor: string | null; readonly via: "page" | "command" } | null,
  masked: boolean,
): string | undefined {
  if (by === null) return undefined;
  const how = by.via === "page" ? "on a page" : "by a command";
  if (by.actor === null) return how;
  return `${masked ? maskedActor(by.actor) : by.actor}, ${how}`;
}

const SETTING_WORDS: Readonly<Record<string, string>> = {
  base_url: "The base URL",
  workspaces: "The configured workspaces",
  data_start: "The data start",
  organization: "The organization",
};

function changeOf(change: {
  setting: string;
  oldValue: string | null;
  newValue: string | null;
}): Html | string {
  const { setting, oldValue, newValue } = change;
  if (setting === "key") return "Another key is used.";
  if (setting === "workspaces") return workspacesChange(oldValue ?? "", newValue ?? "");
  const label = SETTING_WORDS[setting] ?? setting;
  return oldValue === null
    ? html`${label} became known: ${name(newValue ?? "none")}.`
    : html`${label} changed from ${name(oldValue)} to ${name(newValue ?? "none")}.`;
}

function workspacesChange(before: string, now: string): string {
  const ids = (text: string) => text.split(", ").filter((id) => id !== "");
  const [old, current] = [ids(before), ids(now)];
  if (current.length === 0)
    return `No workspace is configured any more (${old.length} were): all that are listed are read.`;
  if (old.length === 0)
    return `${counted(current.length, "workspace")} ${current.length === 1 ? "is" : "are"} configured now. Before, all that are listed were read.`;
  const added = current.filter((id) => !old.includes(id));
  const removed = old.filter((id) => !current.includes(id));
  const named = (some: readonly string[]) => (some.length <= 3 ? `: ${some.join(", ")}` : "");
  return `The configured workspaces changed: ${added.length} added${named(added)}; ${removed.length} removed${named(removed)}.`;
}

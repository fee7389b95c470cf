import { z } from "zod";
import type { Config } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { isDay } from "../../core/domain/time/days.ts";
import { amountText } from "../../core/domain/usage/amount.ts";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { listReporting, type View } from "../../core/store/db/views.ts";
import { type UsageSource, usageSources } from "../../core/store/figures/sources.ts";
import { countRestatements } from "../../core/store/proof/restatement-counts.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import { PAGES_POOL } from "../../web/routes.ts";
import { listDifferences } from "../activity/difference-list.store.ts";
import { listMoments, type Moment } from "../activity/timeline.store.ts";
import { factOf } from "../alerts/conditions.ts";
import { begunMonth, unknownName } from "../catalog/named.ts";
import { billTotals, describeTotal, lineName, lineState } from "../costs/bill.ts";
import { monthBill } from "../costs/bill-lines.store.ts";
import { laterCosts } from "../costs/closed-costs.store.ts";
import { changedMonths } from "../costs/month-adjustments.store.ts";
import { reportOnSources } from "../status/advice.ts";
import { queryAsReader, type Reader } from "./query-as-reader.store.ts";

export interface Sources {
  readonly config: Config;
  readonly store: Store;
  readonly db: Database;
  readonly reader: Reader;
}

export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  readonly about: string;
  /** Refuses an unknown field: a misspelt filter would change the question. */
  readonly input: Input;
  /** A text is sent as it is, anything else as JSON. */
  readonly response: (from: Sources, input: z.output<Input>) => Promise<unknown>;
}

function tool<Input extends z.ZodObject>(definition: Tool<Input>): Tool {
  return definition as unknown as Tool;
}

const QUERY_LIMITS = { rows: 500, bytes: 50_000, statementMs: PAGES_POOL.statementTimeoutMs } as const;
const MOST_CHANGES = 50;

const SOURCE = z.string().optional().describe("Slug of the source. Needed where there are several.");
const day = z.string().refine(isDay, "it is not a day such as 2026-03-01");

export const TOOLS: Readonly<Record<string, Tool>> = {
  list_views: tool({
    about: "The views that a query may read, each with its grain, its key and what it says.",
    input: z.strictObject({}),
    response: async (from) =>
      (await readableViews(from)).map((view) => ({ view: nameOf(view), about: view.comment })),
  }),

  describe_view: tool({
    about: "The columns of a view, each with its type and its meaning. Read it before you query the view.",
    input: z.strictObject({ view: z.string().describe("Its name, with or without its schema.") }),
    response: async (from, input) => {
      const views = await readableViews(from);
      const name = input.view.replace(/^.*\.|\(.*$/g, "");
      const view = views.find((one) => one.name === name);
      if (view === undefined) {
        const known = views.map((one) => one.name);
        throw unknownName({
          code: "view_unknown",
          what: "readable view",
          name,
          known,
          next: "See list_views.",
        });
      }
      return {
        view: nameOf(view),
        about: view.comment,
        columns: view.columns.map(({ name: column, type, comment }) => ({ column, type, about: comment })),
      };
    },
  }),

  query: tool({
    about: `Runs one SELECT of Postgres over the views and returns its columns and rows. It stops after ${QUERY_LIMITS.rows} rows or ${QUERY_LIMITS.bytes / 1000} kB and then says is_cut: aggregate or filter in SQL. A statement has ${QUERY_LIMITS.statementMs / 1000} s.`,
    input: z.strictObject({ sql: z.string().min(1).max(20_000).describe("One SELECT.") }),
    response: ({ store, reader }, { sql }) => queryAsReader(store, reader, sql, QUERY_LIMITS),
  }),

  bill: tool({
    about:
      "What a calendar month is charged, line by line, with its total: an estimate from the imported prices, not an invoice. A cost of null is unknown, which is not zero.",
    input: z.strictObject({ source: SOURCE, month: z.string().describe("Such as 2026-03. It has begun.") }),
    response: ({ db: pool }, input) =>
      inSnapshot(pool, async (db) => {
        const { slug, dataStart } = sourceNamed(await usageSources(db), input.source);
        const month = begunMonth(input.month, await storeNow(db));
        const lines = await monthBill(db, { source: slug, monthStart: month.start });
        return {
          source: slug,
          month: month.name,
          totals: billTotals(lines).map(({ currency, cost }) => ({ currency, cost: amountText(cost) })),
          says: describeTotal(lines, { month, dataStart }),
          lines: lines.map((line) => ({ ...line, line: lineName(line), state: lineState(line) })),
        };
      }),
  }),

  why_changed: tool({
    about: `What changed figures of a range of days: restatements of final figures and differences from the platform's export and totals (the newest ${MOST_CHANGES}; restatements counts all, by meter and measure), what closed months have more now, and new prices, closes and settings.`,
    input: z.strictObject({
      source: SOURCE,
      from: day.describe("First day (UTC)."),
      to: day.describe("Day after the last one (UTC)."),
      workspace_id: z.string().optional().describe("Only changes of this workspace."),
    }),
    response: ({ db: pool, reader }, { source, from, to, workspace_id }) =>
      inSnapshot(pool, async (db) => {
        const { slug, sourceId, workspaces } = sourceNamed(await usageSources(db), source);
        const workspace = workspaces.find(({ id }) => id === workspace_id);
        if (workspace === undefined && workspace_id !== undefined) {
          const known = workspaces.map(({ id }) => id);
          throw unknownName({
            code: "workspace_unknown",
            what: "known workspace",
            name: workspace_id,
            known,
          });
        }
        const about = { sourceId, from, to, workspace: workspace?.key };
        const masked = reader === "usage_reader_masked";
        const differences = await listDifferences(db, {
          source: slug,
          onlyLeft: false,
          from,
          to,
          workspaceId: workspace_id,
          most: MOST_CHANGES,
          masked,
        });
        const kinds = ["prices", "close", "configuration"] as const;
        const events = await listMoments(db, { source: slug, kinds, most: MOST_CHANGES });
        return {
          source: slug,
          closed_months_with_other_traces: await changedMonths(db, about),
          closed_months_with_other_costs: await laterCosts(db, about),
          restatements: await countRestatements(db, about),
          restatements_and_differences: differences.map(({ cursor: _, ...difference }) => difference),
          events_of_all_days: events
            .map((event) => (masked ? withMaskedActor(event) : event))
            .map(({ kind, at, details }) => ({ kind, at, details })),
        };
      }),
  }),

  status: tool({
    about:
      "How far each source is loaded, final, proved and closed, which alerts fire, and what an operator should do next.",
    input: z.strictObject({}),
    response: async ({ config, db, reader }) => {
      const now = await storeNow(db);
      const masked = reader === "usage_reader_masked";
      const reports = await reportOnSources(db, { config, now, queues: { problem: null }, masked });
      return reports.map(({ status, trust, lastSync, alerts, advice }) => ({
        source: status.source,
        data_start: trust.dataStart,
        final_up_to: trust.finalUntil,
        proved_up_to: trust.provedUntil,
        newest_closed_month: trust.closedMonth,
        months_not_closed_before: trust.monthsNotClosed,
        daily_figures_not_loaded: trust.gapDays,
        not_known_whether_counted: trust.unknownMeters.map(({ meter, evidence, since }) => {
          return { usage: METER_NAME[meter], since, why: evidence };
        }),
        open_differences: status.openDifferences,
        restatements: status.restatements,
        last_sync: lastSync && { at: lastSync.startedAt, outcome: lastSync.outcome },
        alerts: alerts.map(factOf),
        advice: advice.sentence,
        command: advice.command ?? null,
      }));
    },
  }),
};

async function readableViews({ db, reader }: Sources): Promise<View[]> {
  return (await listReporting(db, reader)).filter(({ isReadable }) => isReadable);
}

function nameOf({ schema, name, isAsOf }: View): string {
  return `${schema}.${name}${isAsOf ? "(as_of timestamptz)" : ""}`;
}

function withMaskedActor(event: Moment): Moment {
  if (event.kind !== "close" || event.details.by === null) return event;
  const { by } = event.details;
  const actor = by.actor === null ? null : maskedActor(by.actor);
  return { ...event, details: { ...event.details, by: { ...by, actor } } };
}

/** Errors: `source_unknown`, `source_unnamed`. */
function sourceNamed(sources: readonly UsageSource[], name: string | undefined): UsageSource {
  const known = sources.map(({ slug }) => slug);
  const source =
    name === undefined && sources.length === 1 ? sources[0] : sources.find(({ slug }) => slug === name);
  if (source !== undefined) return source;
  if (name !== undefined) throw unknownName({ code: "source_unknown", what: "stored source", name, known });
  throw new UsageError({
    code: "source_unnamed",
    message: `There are ${sources.length} sources.`,
    next:
      sources.length === 0
        ? "`usage-etl sync --inline` loads the first one."
        : `Name one: ${known.join(", ")}.`,
  });
}

import type { Command } from "commander";
import { requireSources, type SourceConfig } from "../../config/config.ts";
import { describeCosts } from "../../domain/bill/price.ts";
import { METER_NAME, METER_NOT_KNOWN, METERS, type Meter } from "../../domain/usage/meter.ts";
import { neverReadProblem } from "../../pipeline/never-read.ts";
import { dataStartProblem } from "../../pipeline/source/data-start.ts";
import { describeAdded, knownSyncBudget } from "../../pipeline/sync/sync-budget.ts";
import { billingClientOf } from "../../platform/clients.ts";
import { counted } from "../../printable.ts";
import { listSources, type SourceStatus, sourceStatuses } from "../../store/activity/overview.ts";
import { type BillPart, billPartsOf, type LearnedBillPart } from "../../store/bill/bill-terms.ts";
import { checkCharges } from "../../store/bill/charges.ts";
import { endingPrices, unpricedMeasures, unpricedUsage } from "../../store/bill/prices.ts";
import { capabilitiesOf, type LearnedCapability } from "../../store/catalog/server-capabilities.ts";
import {
  type LearnableMeter,
  type LearnedMeter,
  learnedMeters,
  type MeterState,
} from "../../store/catalog/source-meters.ts";
import { noteRefusal } from "../../store/catalog/sources.ts";
import { configuredWorkspaces } from "../../store/catalog/workspaces.ts";
import { checkState } from "../../store/coverage/check-state.ts";
import { lostWorkspaces, neverRead, provedByStatistics } from "../../store/coverage/withdrawn-zeros.ts";
import type { Database, Store } from "../../store/db/database.ts";
import { exceedsWorkspaces } from "../../store/load/by-workspace.ts";
import {
  type Check,
  checksToData,
  describeChecks,
  exitOfChecks,
  type Notes,
  notesOf,
  problemOf,
} from "../checks/check.ts";
import { checkDisk, checkFilesPlace } from "../checks/files.ts";
import { checkOwners } from "../checks/owners.ts";
import { checkPlatform, checkWorkspaces, type PlatformView } from "../checks/platform.ts";
import { checkClock, checkPostgres } from "../checks/postgres.ts";
import { checkRedisServer, checkService } from "../checks/redis.ts";
import {
  describeFinality,
  describeProvedByStatistics,
  describeTierFinality,
  finalityOf,
} from "../report/status-report.ts";
import { EXIT } from "../session/exit.ts";
import { withSource } from "../session/options.ts";
import { inSessionOfSource, type Session } from "../session/session.ts";

export const examples = [
  ["doctor", "before the first sync, and when something is odd"],
  ["doctor --state", "check also what is stored of each day; takes minutes"],
] as const;

export function define(command: Command): void {
  withSource(command)
    .option(
      "--state",
      "check what is stored of every day, hour and cost by the rules, which takes minutes for years of usage",
    )
    .action(inSessionOfSource(doctor));
}

/** Checks each part by itself: one that fails keeps none of the others from being checked. */
async function doctor(session: Session, { state = false }: { state?: boolean }): Promise<number> {
  const { config, output } = session;
  const checks: Check[] = [];
  const notes = notesOf(checks, null);
  const store = await checkPostgres(session, notes);
  const redis = await checkRedisServer(config, notes);
  if (store !== undefined) await checkClock(store, notes);
  await checkDisk(notes);
  try {
    if (store !== undefined) await checkOwners(config, store, notes);
    for (const source of requireSources(config)) {
      const own = notesOf(checks, source.slug);
      await checkSource(session, { source, store, isStateAsked: state }, own);
      checkService(redis, { config, source }, own);
      const of = { source: source.slug, store, now: Date.now(), signal: session.signal };
      await checkFilesPlace(config, of, own);
    }
  } catch (error) {
    notes.fail("source", problemOf(error));
  }
  output.data(checksToData(checks), () => describeChecks(checks));
  return exitOfChecks(checks);
}

async function checkSource(
  session: Session,
  { source, store, isStateAsked }: { source: SourceConfig; store: Store | undefined; isStateAsked: boolean },
  notes: Notes,
): Promise<void> {
  const known = store === undefined ? undefined : await knownOf(store, source);
  const billing = billingClientOf(source);
  session.onClose(() => billing.close());
  const workspaces = known?.workspaceIds ?? source.workspaceIds;
  const given = { source, known: workspaces, now: Date.now(), signal: session.signal };
  const view = await checkPlatform(billing, given, notes);
  checkWorkspaces(view, { source, isOpened: known !== undefined }, notes);
  if (store === undefined || known === undefined) {
    const why =
      store === undefined
        ? "The database cannot be read."
        : "The source was never opened. Run `usage-etl sync --inline`.";
    for (const check of ["organization", "requests"]) notes.skip(check, why);
    return;
  }
  checkOrganization(view, known.status, notes);
  // A key that was refused is tried again at once, not in an hour.
  if (view.isKeyAccepted) await noteRefusal(store.db, known.sourceId, undefined);
  await checkStored(session, { source, store, ...known }, notes);
  if (isStateAsked) await checkStoredState(store, known.sourceId, notes);
}

async function checkStoredState({ db }: Store, sourceId: number, notes: Notes): Promise<void> {
  await checkStoredCharges(db, sourceId, notes);
  const { scopes, wrong, first } = await checkState(db, sourceId);
  if (first === undefined)
    return notes.pass("state", `${scopes} scopes: each day and hour is stored as the rules say`);
  const { workspaceId, groupBy, stride, at, stored, byRules } = first;
  const day = at.slice(0, 10);
  notes.fail("state", {
    code: "state_wrong",
    message: `${wrong} days and hours are not stored as the rules say. The first: workspace ${workspaceId} by ${groupBy} and ${stride}, ${at}: stored ${stored ?? "missing"}, by the rules ${byRules ?? "missing"}.`,
    next: `If somebody changed tables by hand, undo that. Then load that time again: \`usage-etl backfill --from ${day} --reprocess all --inline\`, with --stride ${stride}.`,
  });
}

async function checkStoredCharges(db: Database, sourceId: number, notes: Notes): Promise<void> {
  const { wrong, first } = await checkCharges(db, sourceId);
  if (first === undefined) return notes.pass("charges", "each day's cost is stored as usage and prices say");
  notes.fail("charges", {
    code: "charges_wrong",
    message: `${counted(wrong, "daily cost")} are not what usage and prices say. The first: workspace ${first.workspaceId}, ${first.day}, SKU ${first.sku}.`,
    next: "If somebody changed tables by hand, undo that. Then import the prices again with `usage-etl prices import FILE`: it computes all costs anew.",
  });
}

async function knownOf({ db }: Store, { slug, workspaceIds }: SourceConfig) {
  const sourceId = (await listSources(db)).find(({ source }) => source === slug)?.sourceId;
  const status = (await sourceStatuses(db)).find(({ source }) => source === slug);
  if (sourceId === undefined || status === undefined) return undefined;
  const stored = await configuredWorkspaces(db, sourceId);
  return { sourceId, status, workspaceIds: [...workspaceIds, ...stored] };
}

function checkOrganization(
  view: PlatformView,
  { organizationId: bound }: SourceStatus,
  notes: Notes,
): undefined {
  const { organizationId: answered } = view;
  if (answered === undefined) return notes.skip("organization", "The server did not name it.");
  if (bound === null || bound === answered) return notes.pass("organization", answered);
  notes.fail(
    "organization",
    {
      code: "organization_changed",
      message: `The source is bound to organization ${bound}, but its key belongs to ${answered}.`,
      next: "Use a key of the first organization, or configure the other one as a source of its own (USAGE_SOURCES_FILE).",
    },
    EXIT.usage,
  );
}

async function checkStored(
  { config }: Session,
  given: { source: SourceConfig; store: Store; sourceId: number; status: SourceStatus },
  notes: Notes,
): Promise<void> {
  const { source, sourceId, status, store } = given;
  const { settleAfterMs } = config;
  const { db } = store;
  const late = dataStartProblem(source.slug, { stored: status.dataStart, configured: source.dataStart });
  if (late === undefined) notes.pass("data_start", status.dataStart);
  else notes.fail("data_start", late, EXIT.usage);
  const budget = await knownSyncBudget(db, { config: source, settings: config });
  if (budget?.problem !== undefined) notes.fail("requests", budget.problem, EXIT.usage);
  else if (budget !== undefined) {
    const { needed, allowed } = budget;
    notes.pass(
      "requests",
      `a sync needs at most ${needed} requests${describeAdded(budget)}; the rate limit allows ${allowed} before the next sync`,
    );
  }
  const learned = new Map((await learnedMeters(db, sourceId)).map((one) => [one.meter, one]));
  for (const meter of METERS) {
    if (meter !== "traces") checkMeter(meter, { wanted: config.meters, learned: learned.get(meter) }, notes);
  }
  for (const capability of await capabilitiesOf(db, sourceId))
    notes.pass("server", describeCapability(capability));
  if (await exceedsWorkspaces(db, sourceId))
    notes.pass(
      "server",
      "some dimension names more traces than its workspace has, so each is asked for in every sync: see reporting_detail.usage_reconciliation",
    );
  for (const part of await billPartsOf(db, sourceId)) notes.pass("bill", describeBillPart(part));
  const finality = await finalityOf(db, { sourceId, settleAfterMs });
  const [advice = "", changed] = describeFinality(finality, settleAfterMs);
  notes.pass("finality", advice);
  for (const meter of ["longlived", "shortlived"] as const) {
    if (config.meters.includes(meter) && learned.get(meter)?.state === "counted")
      notes.pass("finality", await describeTierFinality(db, { sourceId, meter, settleAfterMs }));
  }
  if (changed !== undefined) notes.warn("finality", { code: "final_changed", message: changed, next: "" });
  const unread = (await lostWorkspaces(db)).filter((one) => one.source === source.slug && one.isUnread);
  for (const { workspaceId } of unread) {
    const message = `The last answer over all of time did not name workspace ${workspaceId}, which had usage: the key reads it no more.`;
    const next = "Give the key access to it again. The next sync loads what is missing.";
    notes.fail("workspaces", { code: "workspace_unverified", message, next }, EXIT.usage);
  }
  const unknown = neverReadProblem((await neverRead(db)).filter((one) => one.source === source.slug));
  if (unknown !== undefined) notes.warn("workspaces", unknown);
  for (const line of describeProvedByStatistics(await provedByStatistics(db, sourceId)))
    notes.pass("zeros", line);
  const costs = await unpricedUsage(db, sourceId);
  const message = describeCosts(costs);
  if (costs.days === 0) notes.pass("costs", message);
  else notes.warn("costs", { code: "usage_unpriced", message, next: PRICE_IT });
  if (costs.prices === 0) return;
  const measures = await unpricedMeasures(db, source.slug);
  if (measures.length > 0)
    notes.warn("costs", {
      code: "usage_unpriced",
      message: `Used this month or last, without a price: ${measures.join(", ")}.`,
      next: `${PRICE_IT} \`usage-etl bill\` names what has none.`,
    });
  for (const { measure, lastDay } of await endingPrices(db, { sourceId, withinDays: ENDING_DAYS }))
    notes.warn("costs", {
      code: "prices_end",
      message: `The prices of ${measure} end, in one workspace at least: ${lastDay} is their last day there.`,
      next: "Import later ones with `usage-etl prices import FILE`, or usage after that day has no cost.",
    });
}

const STATE_WORDS: Readonly<Record<MeterState, string>> = {
  counted: "counted",
  not_counted: "not available",
  nothing_yet: "nothing counted yet",
  not_known: "not known whether the server counts it",
};

function checkMeter(
  meter: LearnableMeter,
  { wanted, learned }: { wanted: readonly Meter[]; learned: LearnedMeter | undefined },
  notes: Notes,
): undefined {
  const name = METER_NAME[meter];
  if (!wanted.includes(meter))
    return notes.pass(
      "bill",
      meter === "shortlived" && wanted.includes("longlived")
        ? `${name}: traces less the long-lived ones`
        : `${name}: not loaded (USAGE_METERS)`,
    );
  const { state = "not_known", evidence = "not asked for yet", learnedAt } = learned ?? {};
  const since = learnedAt === undefined ? "" : `, since ${learnedAt.toISOString().slice(0, 10)}`;
  const message = `${name}: ${STATE_WORDS[state]}${since}: ${evidence}`;
  if (state !== "not_known") return notes.pass("bill", message);
  const next = "Each sync asks again: `usage-etl sync`. USAGE_METERS can leave it out.";
  notes.fail("bill", { code: METER_NOT_KNOWN, message, next }, EXIT.partlyFailed);
}

const BILL_WORDS: Readonly<Record<BillPart, string>> = {
  provider_totals: "the billing provider's totals",
  usage_limits: "usage limits",
  billing_period: "the billing period",
  resource_tags: "tags of resources",
};

/** What of the bill is read. Usage does not need it, so a refusal is no fault. */
function describeBillPart({ part, refusal, askedAt }: LearnedBillPart): string {
  const when = askedAt.toISOString().slice(0, 10);
  if (refusal === null) return `${BILL_WORDS[part]}: read, last on ${when}`;
  return `${BILL_WORDS[part]}: not read; the server refused this key on ${when} and is asked again daily (${refusal})`;
}

const ENDING_DAYS = 31;

const PRICE_IT = "Import prices that are valid on these days with `usage-etl prices import FILE`.";

const MEANINGS: Readonly<Record<string, string>> = {
  no_listing: "the server does not list workspaces",
  no_future_end: "the server refuses an end in the future; today's count is the sum of its hours",
};

function describeCapability({ capability, evidence, learnedAt }: LearnedCapability): string {
  const meaning =
    MEANINGS[capability] ??
    `the server never answers in ${capability.slice("no_".length)} buckets; that stride is not available`;
  return `learned on ${learnedAt.toISOString().slice(0, 10)}: ${meaning} (${evidence})`;
}

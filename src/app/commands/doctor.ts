import type { Command } from "commander";
import { requireSources, type SourceConfig } from "../../core/base/config.ts";
import { counted } from "../../core/base/printable.ts";
import { viewersOf } from "../../core/base/settings.ts";
import { METER_NAME, METER_NOT_KNOWN, METERS, type Meter } from "../../core/domain/usage/meter.ts";
import { namesOf, neverReadProblem } from "../../core/pipeline/never-read.ts";
import { dataStartProblem } from "../../core/pipeline/source/data-start.ts";
import { describeAdded, knownSyncBudget } from "../../core/pipeline/sync/sync-budget.ts";
import { billingClientOf } from "../../core/platform/clients.ts";
import {
  lostWorkspaces,
  neverRead,
  type ProvedByStatistics,
  provedByStatistics,
} from "../../core/store/access/withdrawn-zeros.ts";
import { configuredWorkspaces } from "../../core/store/access/workspaces.ts";
import { listSources, type SourceStatus, sourceStatuses } from "../../core/store/activity/overview.ts";
import { capabilitiesOf, type LearnedCapability } from "../../core/store/catalog/server-capabilities.ts";
import {
  type LearnableMeter,
  type LearnedMeter,
  learnedMeters,
  type MeterState,
} from "../../core/store/catalog/source-meters.ts";
import { noteRefusal } from "../../core/store/catalog/sources.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import { exceedsWorkspaces } from "../../core/store/load/by-workspace.ts";
import { checkCharges } from "../../core/store/months/charges.ts";
import {
  type Check,
  checksToData,
  describeChecks,
  exitOfChecks,
  type Notes,
  noteProxy,
  notesOf,
  problemOf,
} from "../../terminal/check.ts";
import { EXIT } from "../../terminal/exit.ts";
import { withSource } from "../../terminal/options.ts";
import { inSessionOfSource, type Session } from "../../terminal/session.ts";
import { checkProof, checkState } from "../doctor/check-state.ts";
import { checkDisk } from "../doctor/disk.ts";
import { describeFinality, describeTierFinality, finalityOf } from "../doctor/finality.ts";
import { checkPlatform, checkWorkspaces, type PlatformView } from "../doctor/platform.ts";
import { checkClock, checkPostgres } from "../doctor/postgres.ts";
import { checkRedisServer, checkService } from "../doctor/redis.ts";
import { featureChecks, schedulesOfSource } from "../service/registered.ts";

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

async function doctor(session: Session, { state = false }: { state?: boolean }): Promise<number> {
  const { config, output } = session;
  const checks: Check[] = [];
  const notes = notesOf(checks, null);
  const store = await checkPostgres(session, notes);
  const redis = await checkRedisServer(config, notes);
  if (store !== undefined) await checkClock(store, notes);
  await checkDisk(notes);
  const { issuer } = viewersOf(config.webReadToken?.reveal() ?? "");
  if (issuer !== undefined) noteProxy(new URL(issuer), notes);
  const features = await featureChecks();
  for (const { installation } of features)
    await guarded("installation", notes, async () => installation?.(config, store, notes));
  await guarded("source", notes, async () => {
    for (const source of requireSources(config)) {
      const own = notesOf(checks, source.slug);
      await guarded("source", own, async () => {
        const known = store === undefined ? undefined : await knownOf(store, source);
        await checkSource(session, { source, store, known, isStateRequested: state }, own);
        const schedules = await schedulesOfSource(config, source.slug);
        checkService(redis, { slug: source.slug, schedules }, own);
        const checked = { source, store, sourceId: known?.sourceId, signal: session.signal };
        for (const check of features)
          await guarded("source", own, async () => check.source?.(config, checked, own));
      });
    }
  });
  output.data(checksToData(checks), () => describeChecks(checks));
  return exitOfChecks(checks);
}

async function guarded(check: string, notes: Notes, part: () => Promise<void>): Promise<void> {
  try {
    await part();
  } catch (error) {
    notes.fail(check, problemOf(error));
  }
}

async function checkSource(
  session: Session,
  {
    source,
    store,
    known,
    isStateRequested,
  }: {
    source: SourceConfig;
    store: Store | undefined;
    known: Known | undefined;
    isStateRequested: boolean;
  },
  notes: Notes,
): Promise<void> {
  const { baseUrl, controlPlaneUrl, deploymentUrl } = source;
  for (const url of [baseUrl, controlPlaneUrl, deploymentUrl])
    if (url !== undefined) noteProxy(new URL(url), notes);
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
  // The key is valid, so syncs need not wait an hour after a refusal.
  if (view.isKeyAccepted) await noteRefusal(store.db, known.sourceId, undefined);
  await checkStored(session, { source, store, ...known }, notes);
  if (isStateRequested) await checkStoredState(store, known.sourceId, notes);
}

async function checkStoredState({ db }: Store, sourceId: number, notes: Notes): Promise<void> {
  await checkStoredCharges(db, sourceId, notes);
  await checkStoredProof(db, sourceId, notes);
  const { scopes, wrong, first } = await checkState(db, sourceId);
  if (first === undefined)
    return notes.pass("state", `${scopes} scopes: the stored state of each day and hour is right`);
  const { workspaceId, groupBy, stride, at, stored, byRules } = first;
  const day = at.slice(0, 10);
  notes.fail("state", {
    code: "state_wrong",
    message: `${wrong} days and hours have a wrong stored state. The first: workspace ${workspaceId} by ${groupBy} and ${stride}, ${at}: stored ${stored ?? "missing"}, expected ${byRules ?? "missing"}.`,
    next: `If somebody changed tables by hand, undo that. Then load that time again: \`usage-etl backfill --from ${day} --reprocess all --inline\`, with --stride ${stride}.`,
  });
}

async function checkStoredCharges(db: Database, sourceId: number, notes: Notes): Promise<void> {
  const { wrong, first } = await checkCharges(db, sourceId);
  if (first === undefined) return notes.pass("charges", "each day's stored cost matches usage and prices");
  notes.fail("charges", {
    code: "charges_wrong",
    message: `${counted(wrong, "daily cost")} do not match usage and prices. The first: workspace ${first.workspaceId}, ${first.day}, SKU ${first.sku}.`,
    next: "If somebody changed tables by hand, undo that. Then import the prices again with `usage-etl prices import FILE --replace`: it computes all costs again.",
  });
}

async function checkStoredProof(db: Database, sourceId: number, notes: Notes): Promise<void> {
  const { wrong, first } = await checkProof(db, sourceId);
  if (first === undefined) return notes.pass("proof", "each day's stored proof matches its comparisons");
  notes.fail("proof", {
    code: "proof_wrong",
    message: `The stored proof of ${counted(wrong, "scope")} does not match exports, totals and differences. The first: days of workspace ${first.workspaceId} by ${first.groupBy}.`,
    next: "If somebody changed tables by hand, undo that. Then compare its days again: `usage-etl reconcile`.",
  });
}

type Known = NonNullable<Awaited<ReturnType<typeof knownOf>>>;

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
  const { organizationId: responded } = view;
  if (responded === undefined) return notes.skip("organization", "The server did not name it.");
  if (bound === null || bound === responded) return notes.pass("organization", responded);
  notes.fail(
    "organization",
    {
      code: "organization_changed",
      message: `The source is bound to organization ${bound}, but its key belongs to ${responded}.`,
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
      "a dimension has more traces than its workspace, so every sync requests all of them: see reporting_detail.usage_reconciliation",
    );
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
    const message = `The last response over all time did not name workspace ${workspaceId}, which had usage: the key no longer reads it.`;
    const next = "Restore the key's access. The next sync loads what is missing.";
    notes.fail("workspaces", { code: "workspace_unverified", message, next }, EXIT.usage);
  }
  const unknown = neverReadProblem((await neverRead(db)).filter((one) => one.source === source.slug));
  if (unknown !== undefined) notes.warn("workspaces", unknown);
  const byStatistics = describeProvedByStatistics(await provedByStatistics(db, sourceId));
  if (byStatistics !== undefined) notes.pass("zeros", byStatistics);
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
  const next = "Each sync tests it again: `usage-etl sync`. USAGE_METERS can leave it out.";
  notes.fail("bill", { code: METER_NOT_KNOWN, message, next }, EXIT.partlyFailed);
}

const MOST_NAMED = 10;

function describeProvedByStatistics(all: readonly ProvedByStatistics[]): string | undefined {
  if (all.length === 0) return undefined;
  const named = all.slice(0, MOST_NAMED).map((one) => `${one.zeros} of ${namesOf([one])}`);
  const left = all.slice(MOST_NAMED);
  const zerosLeft = left.reduce((sum, { zeros }) => sum + zeros, 0);
  const rest = left.length === 0 ? "" : `, and ${zerosLeft} of ${left.length} more workspaces`;
  return `Zeros that only a workspace's own statistics prove, because no usage ever named it: ${named.join(", ")}${rest}`;
}

const MEANINGS: Readonly<Record<string, string>> = {
  no_listing: "the server does not list workspaces",
  no_future_end: "the server refuses an end in the future; today's count is the sum of its hours",
};

function describeCapability({ capability, evidence, learnedAt }: LearnedCapability): string {
  const meaning =
    MEANINGS[capability] ??
    `the server never responds in ${capability.slice("no_".length)} buckets; that stride is not available`;
  return `learned on ${learnedAt.toISOString().slice(0, 10)}: ${meaning} (${evidence})`;
}

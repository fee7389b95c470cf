import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { readOwnerFile } from "../../cli/commands/files/owner-file.ts";
import { readPriceFile } from "../../cli/commands/files/price-file.ts";
import { describeBill } from "../../cli/commands/proof/totals.ts";
import { monthAt, monthBefore } from "../../domain/months/month.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { DateTime } from "../../luxon.ts";
import { applyOwners } from "../../pipeline/bill/apply-owners.ts";
import { importPrices } from "../../pipeline/bill/import-prices.ts";
import { readBill } from "../../pipeline/bill/read-bill.ts";
import { checkTotals } from "../../pipeline/proof/check-totals.ts";
import { reconcile } from "../../pipeline/proof/reconcile.ts";
import { asRun, endOfTotals } from "../../pipeline/runs.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { planSource } from "../../pipeline/sync/plan.ts";
import { monthOfBill } from "../../store/bill/bill-month.ts";
import { appliedOwners } from "../../store/bill/owners.ts";
import { listPrices } from "../../store/bill/prices.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { closeMonth } from "../../store/months/month-close.ts";
import { backfillOf, createBackfill, listBackfills, steerBackfill } from "../../store/work/backfills.ts";
import type { FaultStep } from "../standin/faults.ts";
import { type Standin, startStandin } from "../standin/server.ts";
import type { Loader } from "./loader.ts";

/** Slug of the source in which trouble is planted. Source `demo` beside it has none. */
export const PLANTED = "demo-trouble";

/** Days before today that are final, and that the overview shows. */
const REFUSED_AGO = { from: 13, to: 10 };
const FAILING_AGO = 17;
const UNUSUAL_AGO = 5;
const NEVER_ENDS = Number.MAX_SAFE_INTEGER;

const storySchema = z.object({
  /** First day of the month that is closed. */
  closed: z.iso.date(),
  /** Days of one workspace that the stand-in refuses at first, half-open: a gap until somebody loads them. */
  refused: z.object({ from: z.iso.date(), to: z.iso.date() }),
  /** A day of another one's users that it always refuses. */
  failing: z.iso.date(),
  /** A day on which one project of the billed source has far more traces than its weekday had. */
  unusual: z.iso.date(),
  /** Whether all of it was planted by an earlier demo on the same data. */
  isTold: z.boolean(),
});

/** When what went wrong. It is kept beside the data, so that the next demo's stand-in says the same. */
export type Story = z.output<typeof storySchema>;

const fileIn = (dataDir: string) => join(dataDir, "story.json");

export function readStory(dataDir: string, now: number): Story {
  try {
    return storySchema.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch {
    const today = DateTime.fromMillis(now, { zone: "utc" }).startOf("day");
    const ago = (days: number) => iso(today.minus({ days }));
    // The month before the last one: all of its days are final, whatever day it is.
    const closed = iso(today.startOf("month").minus({ months: 2 }));
    const refused = { from: ago(REFUSED_AGO.from), to: ago(REFUSED_AGO.to) };
    return { closed, refused, failing: ago(FAILING_AGO), unusual: ago(UNUSUAL_AGO), isTold: false };
  }
}

export function keepStory(dataDir: string, story: Story): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), `${JSON.stringify(story)}\n`);
}

/** The days of single events, ISO. */
export function daysOf({ closed }: Story) {
  const month = DateTime.fromISO(closed, { zone: "utc" });
  return {
    /** A count of the closed month that the platform changes afterwards. */
    restated: iso(month.plus({ days: 16 })),
    /** A day of the month after it on which the export differs from the JSON. */
    differing: iso(month.plus({ months: 1, days: 9 })),
  };
}

/** What a stand-in does on order. */
export interface Troubled {
  readonly standin: Standin;
  readonly workspaces: TwoWorkspaces;
  /** It answers for the days that it refused at first. */
  recover(): void;
  /** It restates a count and contradicts itself. */
  change(): void;
}

/** A stand-in that refuses some of what it is asked, as the story says. */
export async function startTroubled(story: Story, port = 0): Promise<Troubled> {
  const standin = await startStandin({ port, seed: 2, dataStart: story.closed });
  const [refused, changed] = standin.organisation.workspaces as unknown as TwoWorkspaces;
  const { failing } = story;
  const always = refusals(
    { workspace_ids: changed.id, group_by: "user" },
    { from: failing, to: iso(DateTime.fromISO(failing, { zone: "utc" }).plus({ days: 1 })) },
    "A record of this day cannot be read.",
  );
  const atFirst = refusals(
    { workspace_ids: refused.id },
    story.refused,
    "Usage of these days is being recomputed.",
  );
  standin.faults.script(...always, ...atFirst);
  const { restated, differing } = daysOf(story);
  return {
    standin,
    workspaces: [refused, changed],
    recover: () => {
      standin.faults.clear();
      standin.faults.script(...always);
    },
    change: () => {
      const sender = largestSender(standin.organisation, changed.id);
      standin.ledger.change({ ...sender, at: Date.parse(`${restated}T10:00Z`) }, 120);
      const cell = { ...sender, at: Date.parse(`${differing}T10:00Z`) };
      standin.discrepancies.push({ stride: "day", format: "csv", cell, delta: 25 });
    },
  };
}

function largestSender({ streams }: Standin["organisation"], workspaceId: string | undefined) {
  const [sender] = streams
    .filter(({ project, ends }) => project.workspace.id === workspaceId && ends === Number.POSITIVE_INFINITY)
    .sort((a, b) => b.weight - a.weight);
  if (sender === undefined) throw new Error("the stand-in has no stream to change");
  return sender;
}

type TwoWorkspaces = readonly [
  Standin["organisation"]["workspaces"][0],
  Standin["organisation"]["workspaces"][0],
];

/** 422 is split down to days. Hours would be too many parts: 423 is not split. */
function refusals(
  query: Record<string, string>,
  { from, to }: { from: string; to: string },
  detail: string,
): FaultStep[] {
  const match = { query, during: { from: midnight(from), to: midnight(to) } };
  const body = JSON.stringify({ detail });
  return (
    [
      [422, "day"],
      [423, "hour"],
    ] as const
  ).map(([status, stride]) => ({
    fault: { kind: "status", status, body },
    match: { ...match, stride },
    times: NEVER_ENDS,
  }));
}

const midnight = (day: string) => `${day}T00:00:00Z`;

function iso(day: DateTime): string {
  return day.toISODate() as string;
}

const PRICES = fileURLToPath(new URL("prices.csv", import.meta.url));
const OWNERS = fileURLToPath(new URL("owners.yaml", import.meta.url));
/** Hours of a week before those that every sync keeps. */
const BACKFILLED = { from: 45, to: 38 };
/** The backfill is paused when so many of its tasks are done. */
const PAUSED_AFTER = 5;
/** Who the timeline says it was. */
const PLANTER = { name: "demo", role: "operator", via: "command" } as const;
const LOOK_EVERY_MS = 20;
const LONGEST_LOOK_MS = 10_000;

/**
 * Lets a source meet what goes wrong in real ones, by the product's own steps: a sync that is refused in part, a closed month, a
 * count that changes afterwards, an export that differs, a paused backfill. A second time it changes nothing.
 */
export async function plant(
  source: OpenSource,
  {
    story,
    troubled,
    loader,
  }: { story: Story; troubled: Pick<Troubled, "recover" | "change">; loader: Loader },
): Promise<void> {
  const { store, sourceId, settings } = source;
  // On kept data the platform said so before.
  if (story.isTold) troubled.change();
  await loader.sync(source);
  troubled.recover();
  if (!story.isTold) {
    await compare(source, { repair: false });
    await priceUsage(source);
    await closeMonth(store, {
      sourceId,
      monthStart: story.closed,
      settleAfterMs: settings.settleAfterMs,
      by: PLANTER,
    });
    troubled.change();
  }
  await compare(source, { repair: true });
  await checkAll(source);
  await pauseBackfill(source, loader);
}

async function compare(source: OpenSource, { repair }: { repair: boolean }): Promise<void> {
  const range = { start: source.dataStart, end: await storeNow(source.store.db) };
  await asRun(
    source,
    "reconcile",
    (runId) => reconcile({ ...source, runId }, { range, stride: "day", repair }),
    ({ differences }) => ({ outcome: differences.length > 0 ? "differs" : "done" }),
  );
}

/** Checks all final days against totals, as the service does on some nights. */
export async function checkAll(source: OpenSource): Promise<void> {
  await asRun(source, "totals", (runId) => checkTotals({ ...source, runId }, "all"), endOfTotals);
}

/** Prices that somebody imported into the demo stay. */
async function priceUsage({ store }: OpenSource): Promise<void> {
  if ((await listPrices(store.db)).length > 0) return;
  await importPrices(store, { file: PRICES, lines: await readPriceFile(PRICES), replace: false });
}

/** Owners that somebody applied to the demo stay. To be called once tags are read and prices imported. */
export async function giveOwners({ store }: OpenSource): Promise<void> {
  if ((await appliedOwners(store.db)) !== undefined) return;
  await applyOwners(store, { name: "owners.yaml", owners: await readOwnerFile(OWNERS), by: PLANTER });
}

async function pauseBackfill(source: OpenSource, loader: Loader): Promise<void> {
  const { store, sourceId, config, clock } = source;
  const known = await listBackfills(store.db);
  if (known.some((one) => one.source === config.slug)) return;
  const today = floorToGrid(await storeNow(store.db), DAY_MS);
  const range = { start: today - BACKFILLED.from * DAY_MS, end: today - BACKFILLED.to * DAY_MS };
  const wanted = [{ stride: "hour", range }] as const;
  const tasks = await planSource(source, { wanted, reprocess: "missing" });
  const workspaceIds = source.workspaces.map((one) => one.workspaceId);
  const backfillId = await createBackfill(store, {
    sourceId,
    meter: "traces",
    range,
    stride: "hour",
    groupings: GROUPINGS,
    workspaceIds,
    reprocess: "missing",
    tasks,
    by: PLANTER,
  });
  await loader.enqueue(source);
  const until = clock.now() + LONGEST_LOOK_MS;
  const isBegun = async () => (await backfillOf(store.db, backfillId)).done >= PAUSED_AFTER;
  while (!(await isBegun()) && clock.now() < until) await clock.wait(LOOK_EVERY_MS, source.signal);
  await steerBackfill(store, { backfillId, action: "pause", by: PLANTER });
}

/** What is planted, and where it is seen. */
export function describePlanted(
  story: Story,
  { workspaces: [refused, changed] }: Troubled,
  pages: string,
): string {
  const { restated, differing } = daysOf(story);
  const { from, to } = story.refused;
  const at = (path: string) => `    ${pages}${path}source=${PLANTED}`;
  return [
    `Source ${PLANTED} shows what goes wrong in real life. All of it was planted; source demo has none of it.`,
    `- A gap, until somebody loads it: the platform refused ${refused.name} from ${from} to ${to}, and answers again.`,
    `${at("coverage?")}&from=${from}&to=${to}`,
    `- A failure: it refuses the users of ${changed.name} on ${story.failing}, each time.`,
    `${at("coverage?")}&group_by=user&from=${story.failing}`,
    `- A closed month, of which a count of ${restated} changed afterwards.`,
    at(`months/${story.closed.slice(0, 7)}?`),
    `- A difference: the export of ${differing} says more than the JSON, so ${differing.slice(0, 7)} does not close as it is.`,
    at("differences?"),
    "- A paused backfill, for the hours of a week.",
    at("backfills?"),
  ].join("\n");
}

/** Slug of the source whose server counts the whole bill: retention tiers, deployments, sandboxes and evaluators beside traces. */
export const BILLED = "demo-bill";

/** The largest stream has so many times more traces on the unusual day. */
const UNUSUALLY = 8;
/** Traces that the billing provider holds and granular usage does not. */
const DRIFT = 25;

/** A stand-in as a cloud server is now. Its billing provider holds too many traces of the first month of one workspace. */
export async function startBilled(
  { closed, unusual }: Pick<Story, "closed" | "unusual">,
  port = 0,
): Promise<Standin> {
  const standin = await startStandin({
    port,
    seed: 3,
    dataStart: closed,
    deploymentStart: closed,
    contract: "day-granular",
    hosting: "cloud",
    sandboxes: "on",
    evaluators: "on",
    tags: "on",
  });
  const { bill, ledger, organisation, sandboxLedger } = standin;
  const sender = largestSender(organisation, organisation.workspaces[0]?.id);
  ledger.change({ ...sender, at: Date.parse(`${unusual}T14:00Z`) }, Math.ceil(UNUSUALLY * sender.weight));
  const start = DateTime.fromISO(closed, { zone: "utc" });
  const [workspace] = organisation.workspaces;
  // What a sandbox stored on one day of the month after the first one says more in its sum than in its hours.
  const unproved = start.plus({ months: 1, days: 9 });
  const stored = sandboxLedger
    .hours({
      workspaceId: workspace?.id ?? "",
      start: unproved.toMillis(),
      end: unproved.plus({ days: 1 }).toMillis(),
    })
    .find(({ lsu }) => lsu > 0);
  if (stored !== undefined) {
    const { resourceId, hour } = stored;
    sandboxLedger.contradictions.push({ resourceId, at: hour, measure: "lsu", delta: 1_500_000 });
  }
  bill.drifts.push({
    metric: "traces",
    workspaceId: workspace?.id ?? "",
    delta: DRIFT,
    at: start.plus({ days: 4 }).toMillis(),
  });
  const whole = bill
    .totals({ start: start.toMillis(), end: start.plus({ months: 1 }).toMillis() })
    .find(({ metric }) => metric === "traces");
  bill.limits.push({
    workspaceId: null,
    limitType: "monthly_traces",
    value: Math.ceil((whole?.value ?? 0) * 1.1),
  });
  return standin;
}

/** Loads all that the server counts, proves it, and holds its months against the billing provider's totals. Returns what to say about it. */
export async function loadBill(source: OpenSource, loader: Loader): Promise<string> {
  const { store, config } = source;
  await loader.sync(source);
  await compare(source, { repair: true });
  await checkAll(source);
  const bill = await readBill(source, { reach: "quarter", isPatient: false });
  const month = monthBefore(monthAt(await storeNow(store.db)));
  const { traces, longlived, agentRuns, nodesExecuted } = await monthOfBill(store.db, {
    source: config.slug,
    monthStart: month.start,
  });
  const share = longlived === null || !traces ? "not known" : `${((longlived / traces) * 100).toFixed(1)} %`;
  return [
    `Source ${BILLED} shows the whole bill, from a server that counts retention tiers, deployments, sandboxes and evaluators.`,
    `- In ${month.name}, ${count(longlived)} of ${count(traces)} traces were long-lived (${share}), which cost more.`,
    `- Deployments ran ${count(agentRuns)} agent runs of ${count(nodesExecuted)} nodes, counted apart from traces.`,
    `- In the bill (\`usage-etl bill ${month.name} --source ${BILLED}\`) one part is not proved: the sum of a sandbox was made to differ from its hours.`,
    `- The billing provider's own totals. ${DRIFT} traces too many were planted in one of them:`,
    describeBill(BILLED, bill).replace(/^/gm, "    "),
  ].join("\n");
}

function count(number: number | null): string {
  return number === null ? "an unknown number" : number.toLocaleString("en-US");
}

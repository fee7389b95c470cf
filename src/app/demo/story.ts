import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { DateTime } from "../../core/base/luxon.ts";
import { DAY_MS, HOUR_MS } from "../../core/domain/time/stride.ts";
import type { FaultStep } from "../../features/standin/engine/faults.ts";
import { type Standin, startStandin } from "../../features/standin/server.ts";

/** Slug of the source with planted trouble. Source `demo` has none. */
export const PLANTED = "demo-trouble";

/** Slug of the source whose server counts the whole bill, not only traces. */
export const BILLED = "demo-bill";

/** Trouble this many days before today is final and still on the overview. */
const REFUSED_AGO = { from: 13, to: 10 };
const FAILING_AGO = 17;
const UNUSUAL_AGO = 5;

const storySchema = z.object({
  /** First day of the closed month. */
  closed: z.iso.date(),
  /** Days of one workspace, end exclusive, that the stand-in refuses at first. */
  refused: z.object({ from: z.iso.date(), to: z.iso.date() }),
  /** A day on which the stand-in always refuses another workspace's users. */
  failing: z.iso.date(),
  /** A day on which one project of the billed source has far more traces than usual. */
  unusual: z.iso.date(),
  /** First day of the month whose invoice the billed source imports. */
  invoiced: z.iso.date(),
});

/** Days of the planted trouble. They are kept with the data, so the next demo repeats them. */
export type Story = z.output<typeof storySchema>;

const fileIn = (dataDir: string) => join(dataDir, "story.json");

export function readStory(dataDir: string, now: number): Story {
  try {
    return storySchema.parse(JSON.parse(readFileSync(fileIn(dataDir), "utf8")));
  } catch {
    const today = DateTime.fromMillis(now, { zone: "utc" }).startOf("day");
    const ago = (days: number) => iso(today.minus({ days }));
    // Two months ago, every day is final.
    const closed = iso(today.startOf("month").minus({ months: 2 }));
    const refused = { from: ago(REFUSED_AGO.from), to: ago(REFUSED_AGO.to) };
    // Usage that changes today must have changed after the day of issue.
    const invoiced = iso(today.minus({ days: 1 }).startOf("month").minus({ months: 1 }));
    return { closed, refused, failing: ago(FAILING_AGO), unusual: ago(UNUSUAL_AGO), invoiced };
  }
}

export function keepStory(dataDir: string, story: Story): void {
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(fileIn(dataDir), `${JSON.stringify(story)}\n`);
}

export function daysOf({ closed }: Pick<Story, "closed">) {
  const month = DateTime.fromISO(closed, { zone: "utc" });
  return {
    restated: iso(month.plus({ days: 16 })),
    /** A day on which the export differs from the JSON. */
    differing: iso(month.plus({ months: 1, days: 9 })),
    /** From this day on, a setting keeps all traces of one workspace for long. */
    retained: iso(month.plus({ months: 1, days: 19 })),
  };
}

export interface Troubled {
  readonly standin: Standin;
  readonly workspaces: TwoWorkspaces;
  /** Lets the stand-in respond for the days that it refused at first. */
  recover(): void;
  /** Makes the stand-in restate a count and contradict itself. */
  change(): void;
}

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

/** A task with status 422 is split down to days. Hours get 423, which is not split: they would be too many. */
function refusals(
  query: Record<string, string>,
  { from, to }: { from: string; to: string },
  detail: string,
): FaultStep[] {
  const during = { from: `${from}T00:00:00Z`, to: `${to}T00:00:00Z` };
  const refuse = (status: number, stride: "day" | "hour"): FaultStep => ({
    fault: { kind: "status", status, body: JSON.stringify({ detail }) },
    match: { query, during, stride },
    times: Number.MAX_SAFE_INTEGER,
  });
  return [refuse(422, "day"), refuse(423, "hour")];
}

function iso(day: DateTime): string {
  return day.toISODate() as string;
}

/** Factor of the largest stream's traces on the unusual day. */
const UNUSUALLY = 8;
/** Days until the setting is changed back. */
const RETAINED_FOR = 2;
/** Traces that only the billing provider counts. */
export const DRIFT = 25;

/** A cloud server whose billing provider has too many traces of one workspace's first month, and whose retention changes. */
export async function startBilled(story: Pick<Story, "closed" | "unusual">, port = 0): Promise<Standin> {
  const { closed, unusual } = story;
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
    auditLog: "on",
  });
  const { bill, ledger, organisation, sandboxLedger } = standin;
  const sender = largestSender(organisation, organisation.workspaces[0]?.id);
  ledger.change({ ...sender, at: Date.parse(`${unusual}T14:00Z`) }, Math.ceil(UNUSUALLY * sender.weight));
  const start = DateTime.fromISO(closed, { zone: "utc" });
  const [workspace] = organisation.workspaces;
  changeRetention(standin, { workspace, on: Date.parse(daysOf(story).retained) });
  // On one day of the second month, a sandbox's total exceeds its hours.
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
  chargeInvoice(standin);
  return standin;
}

function changeRetention(
  { bill, ledger, organisation }: Standin,
  { workspace, on }: { workspace: Standin["organisation"]["workspaces"][0] | undefined; on: number },
): void {
  const off = on + RETAINED_FOR * DAY_MS;
  const streams = organisation.streams.filter(({ project }) => project.workspace === workspace);
  for (const { project, user, key } of streams)
    for (let at = on; at < off; at += HOUR_MS) ledger.upgrade({ project, user, key, at }, 1_000_000);
  const change = {
    operation: "update_ttl_settings",
    workspaceId: workspace?.id ?? null,
    userId: organisation.users[0]?.id ?? null,
    succeeded: true,
  };
  bill.changes.push({ ...change, at: on + 600_000 }, { ...change, at: off + 600_000 });
}

/** Unlike the bill, the invoice has this much more for the first workspace's traces. */
const OVERCHARGED_CENTS = 1_234;

/** Invoices have the prices of prices.csv, and what people look for on them. */
function chargeInvoice({ invoices, organisation }: Standin): void {
  const [first] = organisation.workspaces.map(({ id }) => id).sort();
  const { terms, planted } = invoices;
  terms.traces = [
    { upTo: 100_000, micros: 5_000 },
    { upTo: Number.POSITIVE_INFINITY, micros: 4_000 },
  ];
  terms.tiersOfOrganisation = true;
  planted.creditCents = 5_000;
  planted.seatFrom = 14;
  if (first !== undefined) planted.overcharge = { workspaceId: first, cents: OVERCHARGED_CENTS };
}

/** Upgrades traces of the invoiced month that were short-lived when the invoice was issued. */
export function upgradeLate({ ledger, organisation }: Standin, { invoiced }: Pick<Story, "invoiced">): void {
  const sender = largestSender(organisation, organisation.workspaces[1]?.id);
  const day = Date.parse(invoiced) + 2 * DAY_MS;
  for (let at = day; at < day + DAY_MS; at += HOUR_MS) ledger.upgrade({ ...sender, at }, 5);
}

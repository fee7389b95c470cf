import { fileURLToPath } from "node:url";
import { PackageMissingError } from "../../core/base/optional.ts";
import { monthAt, monthBefore } from "../../core/domain/months/month.ts";
import { DAY_MS, floorToGrid } from "../../core/domain/time/stride.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import { asRun, endOfTotals } from "../../core/pipeline/as-run.ts";
import { checkTotals } from "../../core/pipeline/proof/check-totals.ts";
import { reconcile } from "../../core/pipeline/proof/reconcile.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import { planSource } from "../../core/pipeline/sync/plan.ts";
import { closeOf } from "../../core/store/months/closes.ts";
import { backfillOf, createBackfill, listBackfills, steerBackfill } from "../../core/store/work/backfills.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { closePeriod } from "../../features/close/close-period.store.ts";
import { importPrices } from "../../features/costs/import-prices.ts";
import { readPriceFile } from "../../features/costs/price-file.ts";
import { listPrices } from "../../features/costs/prices.store.ts";
import { readBill } from "../../features/costs/read-bill.ts";
import { describeBill } from "../../features/costs/totals.command.ts";
import { importInvoices, previewInvoices } from "../../features/invoice/import-invoice.ts";
import { findInvoices } from "../../features/invoice/match.store.ts";
import { applyOwners } from "../../features/owners/apply-owners.ts";
import { readOwnerFile } from "../../features/owners/owner-file.ts";
import { appliedOwners } from "../../features/owners/owners.store.ts";
import type { Loader } from "./loader.ts";
import { BILLED, DRIFT, daysOf, PLANTED, type Story, type Troubled } from "./story.ts";

const PRICES = fileURLToPath(new URL("prices.csv", import.meta.url));
const OWNERS = fileURLToPath(new URL("owners.yaml", import.meta.url));
const BACKFILLED = { from: 45, to: 38 };
const PAUSED_AFTER = 5;
const PLANTER = { name: "demo", role: "operator", via: "command" } as const;
const LOOK_EVERY_MS = 20;
const LONGEST_LOOK_MS = 10_000;

/** Creates real trouble with the product's own commands. A second call changes nothing. */
export async function plant(
  source: OpenSource,
  {
    story,
    troubled,
    loader,
  }: { story: Story; troubled: Pick<Troubled, "recover" | "change">; loader: Loader },
): Promise<void> {
  const { store, sourceId, settings } = source;
  // If the month is closed, an earlier demo already changed the figures.
  const closed = monthAt(Date.parse(story.closed));
  const isTold = (await closeOf(store.db, { sourceId, ...closed })) !== undefined;
  if (isTold) troubled.change();
  await loader.sync(source);
  troubled.recover();
  if (!isTold) {
    await compare(source, { repair: false });
    await priceUsage(source);
    await closePeriod(store, {
      sourceId,
      period: closed,
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

export async function checkAll(source: OpenSource): Promise<void> {
  await asRun(source, "totals", (runId) => checkTotals({ ...source, runId }, "all"), endOfTotals);
}

async function priceUsage({ store }: OpenSource): Promise<void> {
  if ((await listPrices(store.db)).length > 0) return;
  await importPrices(store, { file: PRICES, lines: await readPriceFile(PRICES), replace: false });
}

/** Tags must be loaded and prices imported before. */
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
  const { workspaceIds } = source;
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

export function describePlanted(
  story: Story,
  { workspaces: [refused, changed] }: Troubled,
  pages: string,
): string {
  const { restated, differing } = daysOf(story);
  const { from, to } = story.refused;
  const at = (path: string) => `    ${pages}${path}source=${PLANTED}`;
  return [
    `Source ${PLANTED} shows what goes wrong in real life. All of it was planted. Source demo has no such trouble.`,
    `- A gap, until somebody loads it: the platform refused ${refused.name} from ${from} to ${to}, and responds again.`,
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

/** Usage that changes after the invoice was issued has changed already if an earlier demo imported the invoice. */
export async function loadBill(
  source: OpenSource,
  { story, loader, upgrade }: { story: Story; loader: Loader; upgrade: () => void },
): Promise<string> {
  const { config, store } = source;
  const [known] = await findInvoices(store.db, { source: config.slug });
  if (known !== undefined) upgrade();
  await loader.sync(source);
  await compare(source, { repair: true });
  const file =
    known === undefined ? await issuedInvoice(config.baseUrl, story.invoiced.slice(0, 7)) : undefined;
  if (known === undefined) upgrade();
  await checkAll(source);
  const bill = await readBill(source, { reach: "quarter", isPatient: false });
  const invoice = known?.number ?? (file && (await importInvoice(source, file)));
  const month = monthBefore(monthAt(await storeNow(store.db)));
  return [
    `Source ${BILLED} shows the whole bill, from a server that counts retention tiers, deployments, sandboxes and evaluators.`,
    `- In the bill (\`usage-etl bill ${month.name} --source ${BILLED}\`) one part is not proved: the sum of a sandbox was made to differ from its hours.`,
    "- The same bill names a change of retention in the audit log, beside the day on which long-lived traces stepped.",
    `- The billing provider's own totals. ${DRIFT} traces too many were planted in one of them:`,
    describeBill(BILLED, bill).replace(/^/gm, "    "),
    ...(invoice === undefined
      ? []
      : [
          `- An invoice that charges 12.34 USD too much, which nothing explains: \`usage-etl invoice explain ${invoice}\`. Late upgrades, a workspace that no sync loads, seats, a credit and tax are explained.`,
        ]),
  ].join("\n");
}

/** The PDF that the stand-in issues. */
async function issuedInvoice(platform: string, month: string): Promise<{ name: string; bytes: Uint8Array }> {
  const response = await fetch(`${platform}/__standin/invoices/${month}`);
  return { name: `invoice-${month}.pdf`, bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** Returns its number; undefined without the package that reads PDFs. */
async function importInvoice(
  { config, store }: OpenSource,
  file: { name: string; bytes: Uint8Array },
): Promise<string | undefined> {
  try {
    const preview = await previewInvoices(store.db, file, { source: config.slug, fields: {} });
    await importInvoices(store, preview, { replace: false, by: PLANTER });
    return preview.invoices[0]?.invoice.number;
  } catch (error) {
    if (error instanceof PackageMissingError) return undefined;
    throw error;
  }
}

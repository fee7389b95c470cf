import { describeBill } from "../../cli/commands/proof/totals.ts";
import { monthAt, monthBefore } from "../../domain/months/month.ts";
import { DateTime } from "../../luxon.ts";
import { readBill } from "../../pipeline/bill/read-bill.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { monthOfBill } from "../../store/bill/bill-month.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { type Standin, startStandin } from "../standin/server.ts";
import type { Loader } from "./loader.ts";
import type { Story } from "./story.ts";

/** Slug of the source whose server counts the whole bill: retention tiers and deployments beside traces. */
export const BILLED = "demo-bill";

/** Traces that the billing provider holds and granular usage does not. */
const DRIFT = 25;

/** A stand-in as a cloud server is now. Its billing provider holds too many traces of the first month of one workspace. */
export async function startBilled({ closed }: Pick<Story, "closed">): Promise<Standin> {
  const standin = await startStandin({
    ...{ seed: 3, dataStart: closed, deploymentStart: closed },
    ...{ contract: "day-granular", hosting: "cloud" },
  });
  const { bill, organisation } = standin;
  const start = DateTime.fromISO(closed, { zone: "utc" });
  const [workspace] = organisation.workspaces;
  bill.drifts.push({
    ...{ metric: "traces", workspaceId: workspace?.id ?? "", delta: DRIFT },
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

/** Loads all that the server counts, and holds its months against the billing provider's totals. Returns what to say about it. */
export async function loadBill(source: OpenSource, loader: Loader): Promise<string> {
  const { store, config } = source;
  await loader.sync(source);
  const bill = await readBill(source, { reach: "quarter", isPatient: false });
  const month = monthBefore(monthAt(await storeNow(store.db)));
  const { traces, longlived, agentRuns, nodesExecuted } = await monthOfBill(store.db, {
    source: config.slug,
    monthStart: month.start,
  });
  const share = longlived === null || !traces ? "not known" : `${((longlived / traces) * 100).toFixed(1)} %`;
  return [
    `Source ${BILLED} shows the whole bill, from a server that counts retention tiers and deployments.`,
    `- In ${month.name}, ${count(longlived)} of ${count(traces)} traces were long-lived (${share}), which cost more.`,
    `- Deployments ran ${count(agentRuns)} agent runs of ${count(nodesExecuted)} nodes, counted apart from traces.`,
    `- The billing provider's own totals. ${DRIFT} traces too many were planted in one of them:`,
    describeBill(BILLED, bill).replace(/^/gm, "    "),
  ].join("\n");
}

function count(number: number | null): string {
  return number === null ? "an unknown number" : number.toLocaleString("en-US");
}

import { expect, test } from "vitest";
import { amountOf, amountText } from "../../src/core/domain/usage/amount.ts";
import { type Explanation, explain } from "../../src/features/invoice/explain.ts";
import { readMatchInputs } from "../../src/features/invoice/match.store.ts";
import { createPrices, dayOf, type GivenPrice, unscaled } from "../support/charges.ts";
import { seed } from "../support/drawn.ts";
import { addSource, connectPlain } from "../support/reporting.ts";
import { loadRows, setupMigrated, windowOf } from "../support/store.ts";
import { type GivenLine, insertInvoice } from "../support/stored-invoices.ts";

/**
 * Random usage in which the invoice and our figures differ by what is named here, each with the amount that this file computes:
 * trace by trace, in cents, without code of the program.
 */

const WORKSPACES = ["a", "b", "c"].map((one) => `0000000${one}-0000-4000-8000-000000000001`);
const UNREAD = "0000000d-0000-4000-8000-000000000001";
const MEASURES = ["traces", "longlived"] as const;
type Measure = (typeof MEASURES)[number];
const TEXT = {
  traces: "LangSmith Traces",
  longlived: "LangSmith Traces (Extended Data Retention Upgrades)",
};
const [APRIL, MAY] = [31, 61];

type Random = (below: number) => number;

function random(start: number): Random {
  let state = start;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

interface Plan {
  readonly starts: readonly number[];
  readonly prices: readonly string[];
  readonly countedOver: "source" | "workspace";
}

/** Traces by workspace and tier. */
class Counted {
  readonly tiers = new Map<string, number[]>();
  readonly plan: Plan;
  constructor(plan: Plan) {
    this.plan = plan;
  }

  of(workspace: string): number[] {
    const own = this.tiers.get(workspace) ?? this.plan.starts.map(() => 0);
    this.tiers.set(workspace, own);
    return own;
  }

  total(workspace?: string): number {
    const counts = workspace === undefined ? [...this.tiers.values()].flat() : this.of(workspace);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  add(workspace: string, traces: number): void {
    for (let at = 0; at < traces; at++) {
      const position = this.plan.countedOver === "workspace" ? this.total(workspace) : this.total();
      const own = this.of(workspace);
      const tier = this.plan.starts.findLastIndex((start) => start <= position);
      own[tier] = (own[tier] as number) + 1;
    }
  }

  remove(workspace: string, traces: number): void {
    const own = this.of(workspace);
    for (let at = 0; at < traces; at++) {
      const tier = own.findLastIndex((count) => count > 0);
      own[tier] = (own[tier] as number) - 1;
    }
    if (this.plan.countedOver === "workspace") return;
    // What was counted later moves into the room: from the highest tier, and of the last workspace first.
    this.plan.starts.forEach((start, low) => {
      const end = this.plan.starts[low + 1] ?? Number.POSITIVE_INFINITY;
      const filled = () => [...this.tiers.values()].reduce((sum, counts) => sum + (counts[low] as number), 0);
      for (let high = this.plan.starts.length - 1; high > low; high--) {
        for (const other of [...this.tiers.keys()].sort().reverse()) {
          const counts = this.of(other);
          while ((counts[high] as number) > 0 && filled() < end - start) {
            counts[high] = (counts[high] as number) - 1;
            counts[low] = (counts[low] as number) + 1;
          }
        }
      }
    });
  }

  change(workspace: string, traces: number): void {
    if (traces < 0) this.remove(workspace, -traces);
    else this.add(workspace, traces);
  }

  again(plan: Plan, order: readonly string[]): Counted {
    const counted = new Counted(plan);
    for (const workspace of order) counted.add(workspace, this.total(workspace));
    return counted;
  }

  /** Lines by cell: workspace or "". Amounts in ten-billionths, rounded half up to cents. */
  lines(isByWorkspace: boolean, prices = this.plan.prices): Line[] {
    const cells = new Map<string, number[]>();
    for (const [workspace, counts] of this.tiers) {
      const cell = isByWorkspace ? workspace : "";
      const sum = cells.get(cell) ?? counts.map(() => 0);
      cells.set(
        cell,
        sum.map((one, tier) => one + (counts[tier] as number)),
      );
    }
    return [...cells].flatMap(([cell, counts]) =>
      counts.flatMap((quantity, tier) => {
        const exact = unscaled(prices[tier] as string) * BigInt(quantity);
        const amount = ((exact + 50_000_000n) / 100_000_000n) * 100_000_000n;
        return quantity === 0 ? [] : [{ cell, tier, quantity, exact, amount, price: prices[tier] as string }];
      }),
    );
  }
}

interface Line {
  readonly cell: string;
  readonly tier: number;
  readonly quantity: number;
  readonly exact: bigint;
  readonly amount: bigint;
  readonly price: string;
}

const sumOf = (lines: readonly Line[]) => lines.reduce((sum, { amount }) => sum + amount, 0n);

interface World {
  readonly usage: Record<Measure, Map<string, number[]>>;
  readonly plans: Record<Measure, Plan>;
  /** What the invoice counts more, by measure and workspace. */
  readonly perturbed: Map<string, { cause: "changes" | "upgrades" | "days_open"; traces: number }>;
}

function anyPlan(draw: Random): Plan {
  const starts = [0, ...(draw(4) === 0 ? [] : [20 + draw(60)]), ...(draw(3) === 0 ? [150 + draw(60)] : [])];
  const price = () => `0.${String(draw(10)).padStart(2, "0")}${String(draw(1000)).padStart(3, "0")}`;
  const prices = starts.map((_, at) => (at === 0 && draw(2) === 0 ? "0" : price()));
  return { starts, prices, countedOver: draw(2) === 0 ? "source" : "workspace" };
}

function anyWorld(draw: Random): World {
  const usage = Object.fromEntries(
    MEASURES.map((measure) => [
      measure,
      new Map(
        WORKSPACES.map((workspace) => {
          const days = Array.from({ length: MAY }, () => (draw(3) === 0 ? 1 + draw(25) : 0));
          // Days 5 and 59 change, day 60 is not loaded: nothing else is there.
          for (const at of [5, 59]) days[at] = 20;
          days[60] = 0;
          return [workspace, days];
        }),
      ),
    ]),
  ) as World["usage"];
  const perturbed: World["perturbed"] = new Map();
  for (const measure of MEASURES) {
    for (const workspace of WORKSPACES) {
      const cause = (["changes", "upgrades", "days_open", undefined, undefined] as const)[draw(5)];
      const [few, sign] = [1 + draw(19), draw(2) === 0 ? 1 : -1];
      if (cause === "changes") perturbed.set(`${measure} ${workspace}`, { cause, traces: sign * few });
      // Which of two workspaces had the traces of lines for all of them is not known.
      const isOpen = [...perturbed].some(
        ([key, one]) => key.startsWith(measure) && one.cause === "days_open",
      );
      if (cause === "days_open" && !isOpen) perturbed.set(`${measure} ${workspace}`, { cause, traces: few });
      if (cause === "upgrades" && measure === "longlived")
        perturbed.set(`${measure} ${workspace}`, { cause, traces: few });
    }
  }
  return { usage, perturbed, plans: { traces: anyPlan(draw), longlived: anyPlan(draw) } };
}

async function load(world: World) {
  const { store, url } = await setupMigrated();
  const sourceId = await addSource(store, { slug: "default", workspaceIds: WORKSPACES, strides: ["day"] });
  const bench = { store, sourceId };
  const client = await connectPlain(url);
  const prices = MEASURES.flatMap((measure) => {
    const { starts, prices, countedOver } = world.plans[measure];
    return starts.map((fromQuantity, at): GivenPrice => {
      const unitPrice = prices[at] as string;
      return { sku: `sku ${measure}`, measure, unitPrice, fromQuantity, countedOver };
    });
  });
  const given = { sourceId, groupBy: "workspace" as const };
  for (const meter of MEASURES) {
    for (const workspaceId of WORKSPACES) {
      const days = world.usage[meter].get(workspaceId) as number[];
      const isOpen = world.perturbed.get(`${meter} ${workspaceId}`)?.cause === "days_open";
      const rows = days.flatMap((traces, at) =>
        traces > 0 ? [[dayOf(at), workspaceId, traces] as const] : [],
      );
      for (const [from, to] of [
        [0, APRIL],
        [APRIL, isOpen ? 60 : MAY],
      ] as const) {
        const window = windowOf("day", dayOf(from), dayOf(to));
        const own = rows.filter(([day]) => day >= dayOf(from) && day < dayOf(to));
        await loadRows(store, { ...given, meter, workspaceId, window, rows: own });
      }
    }
  }
  for (const [key, { cause, traces }] of world.perturbed) {
    if (cause === "days_open") continue;
    const [meter, workspaceId] = key.split(" ") as [Measure, string];
    const at = cause === "changes" ? 59 : 5;
    // We count more now than the invoice did, or less. An upgrade adds to an earlier month.
    const now = 20 + (cause === "changes" ? -traces : traces);
    const window = windowOf("day", dayOf(at), dayOf(at + 1));
    await loadRows(store, {
      ...given,
      meter,
      workspaceId,
      window,
      rows: now === 0 ? [] : [[dayOf(at), workspaceId, now]],
    });
    if (cause === "upgrades")
      await client.query(
        "UPDATE usage.restatement SET restated_at = '2026-04-10' WHERE bucket_start = '2026-03-06'",
      );
  }
  await createPrices(store, prices);
  // Extended traces of a workspace that is not read are known from the billing provider.
  await client.query(
    `INSERT INTO usage.unloaded_workspace SELECT source_id, '2026-04-01', '${UNREAD}', 'Elsewhere', 33, now() FROM usage.source;
     INSERT INTO usage.provider_total
     SELECT source_id, '2026-04-01', 'extended', '${UNREAD}', 'Extended', 'longlived', 33, 'unknown_workspace', NULL, 1, now() FROM usage.source`,
  );
  return { ...bench, client };
}

/** `cause measure workspace amount`; parts of the remainder are named as the explanation names them. */
function shown(found: Explanation): string[] {
  const causes = found.causes
    .filter(({ amount }) => amount !== 0n)
    .map(({ cause, sku, workspaceId, amount }) => `${cause} ${sku} ${workspaceId} ${amountText(amount)}`);
  const left = found.unexplained.map(
    ({ why, sku, workspaceId, amount }) => `${why} ${sku} ${workspaceId} ${amountText(amount)}`,
  );
  return [...causes, ...left].sort();
}

function anyInvoice(world: World, draw: Random, number: string) {
  const expected: string[] = [];
  const lines: GivenLine[] = [];
  let bill = 0n;
  const isByWorkspace = draw(3) > 0;
  const period = draw(4) === 0 ? [19, 50] : [APRIL, MAY];
  const isMonth = period[0] === APRIL;
  for (const measure of MEASURES) {
    const [plan, sku] = [world.plans[measure], `sku ${measure}`];
    const name = (cause: string, amount: bigint, workspace: string | null = null) => {
      if (amount !== 0n) expected.push(`${cause} ${sku} ${workspace} ${amountText(amount)}`);
    };
    const usage = world.usage[measure];
    const stored = (workspace: string, at: number) => {
      const own = world.perturbed.get(`${measure} ${workspace}`);
      const day = usage.get(workspace)?.[at] as number;
      return at === 59 && own?.cause === "changes" ? day - own.traces : day;
    };
    let counted = new Counted(plan);
    for (let at = APRIL; at < MAY; at++)
      for (const workspace of WORKSPACES) counted.add(workspace, stored(workspace, at));
    const ours = counted.lines(true);
    bill += ours.reduce((sum, { exact }) => sum + exact, 0n);
    let cost = sumOf(counted.lines(isByWorkspace));
    name("rounding", cost - ours.reduce((sum, { exact }) => sum + exact, 0n));
    const step = (cause: string, workspace: string | null = null) => {
      const now = sumOf(counted.lines(isByWorkspace));
      name(cause, now - cost, workspace);
      cost = now;
    };
    if (!isMonth) {
      const others = new Counted(plan);
      for (const workspace of WORKSPACES)
        for (let at = period[0] as number; at < (period[1] as number); at++)
          others.add(workspace, usage.get(workspace)?.[at] as number);
      counted = others;
      step("period");
    }
    const own = WORKSPACES.map((workspace) => ({
      workspace,
      ...world.perturbed.get(`${measure} ${workspace}`),
    }));
    const has = (cause: string) => isMonth && own.some((one) => one.cause === cause);
    // Without cells of workspaces, an upgrade is found only if nothing else differs.
    // Whole months of a workspace that is not read are known, and lines for all workspaces have them.
    const isUnread = isByWorkspace ? draw(3) === 0 : isMonth;
    const skipsUpgrades = !isByWorkspace && (has("days_open") || isUnread);
    for (const cause of ["changes", "upgrades", "days_open"] as const) {
      for (const one of own.filter((other) => other.cause === cause && (isMonth || cause === "upgrades"))) {
        if (cause === "upgrades" && skipsUpgrades) continue;
        counted.change(one.workspace, one.traces as number);
        step(cause, one.workspace);
      }
    }
    if (isUnread) {
      counted.add(UNREAD, isMonth ? 33 : 12);
      step("unread_workspace", UNREAD);
    }
    if (draw(3) === 0) {
      const countedOver = plan.countedOver === "source" ? "workspace" : "source";
      counted = counted.again({ ...counted.plan, countedOver }, [...counted.tiers.keys()].sort());
      step("counted_over");
    }
    let prices = plan.prices;
    if (draw(3) === 0) {
      prices = prices.map((price) => `1${price.slice(1)}`);
      const before = cost;
      cost = sumOf(counted.lines(isByWorkspace, prices));
      name("price", cost - before);
    }
    const written = counted.lines(isByWorkspace, prices);
    // More usage than there is, or an amount that is no product: nothing explains it.
    const odd = written[draw(written.length)] as Line;
    const isQuiet =
      isByWorkspace && isMonth && !own.some((one) => one.workspace === odd.cell && one.cause !== undefined);
    const wrong = isQuiet && draw(2) === 0 ? 10n ** 8n * BigInt(1 + draw(2000)) : 0n;
    if (wrong > 0n) name("arithmetic", wrong, odd.cell || null);
    for (const line of written) {
      const end = plan.starts[line.tier + 1];
      const start = plan.starts[line.tier] as number;
      lines.push({
        sum: TEXT[measure],
        text: `Tier ${line.tier + 1} (${end === undefined ? `> ${start}` : `${start} - ${end}`})`,
        quantity: String(line.quantity),
        unitPrice: line.price,
        amount: amountText(line === odd ? line.amount + wrong : line.amount),
        workspace: line.cell || null,
        ...(isMonth ? {} : { period: [dayOf(period[0] as number), dayOf(period[1] as number)] as const }),
      });
    }
  }
  const other = (cause: string, text: string, kind: string, cents: number) => {
    const amount = (cents / 100).toFixed(2);
    lines.push({ text, kind, amount });
    expected.push(`${cause} null null ${amountText(amountOf(amount))}`);
  };
  if (draw(2) === 0) other("seat", "LangSmith Plus Seats", "seat", 3900 + draw(9000));
  if (draw(2) === 0) other("tax", "Sales tax", "tax", 1 + draw(900));
  if (draw(2) === 0) other("credit", "Credit", "credit", -1 - draw(900));
  if (draw(3) === 0) other("not_reported", "LangSmith Deployment LCU", "usage", 1 + draw(900));
  if (draw(3) === 0) other("no_rule", "Something else", "usage", 1234);
  const total = lines.reduce((sum, { amount }) => sum + amountOf(amount), 0n);
  const issuedOn = isMonth ? "2026-05-01" : "2026-04-21";
  return {
    given: { number, issuedOn, lines, total: amountText(total) },
    expected: expected.sort(),
    bill,
    total,
  };
}

const SEED = seed(20261130);
const [WORLDS, INVOICES] = [25, 8];

test(`each perturbation of 200 invoices is named with its amount, seed ${SEED}`, async () => {
  const draw = random(SEED);
  const named = new Set<string>();
  for (let world = 0; world < WORLDS; world++) {
    const drawn = anyWorld(draw);
    const { store, client } = await load(drawn);
    for (let at = 0; at < INVOICES; at++) {
      const { given, expected, bill, total } = anyInvoice(drawn, draw, `INV-${world}-${at}`);
      const invoiceId = await insertInvoice(client, given);
      const found = explain(await readMatchInputs(store.db, invoiceId));
      const about = `world ${world}, invoice ${at}`;
      expect([about, amountText(found.bill), ...shown(found)]).toEqual([
        about,
        amountText(bill),
        ...expected,
      ]);
      const sum = [...found.causes, ...found.unexplained].reduce((all, { amount }) => all + amount, 0n);
      expect(sum).toBe(total - found.bill);
      expect(found.unexplained.reduce((all, { amount }) => all + amount, 0n)).toBe(found.remainder);
      for (const line of expected) named.add(line.split(" ")[0] as string);
      await client.query("DELETE FROM usage.invoice_line; DELETE FROM usage.invoice");
    }
    await client.query("DELETE FROM usage.unloaded_workspace");
  }
  expect([...named].sort()).toEqual(
    [
      ...[
        "arithmetic",
        "changes",
        "counted_over",
        "credit",
        "days_open",
        "no_rule",
        "not_reported",
        "period",
        "price",
      ],
      ...["rounding", "seat", "tax", "unread_workspace", "upgrades"],
    ].sort(),
  );
}, 600_000);

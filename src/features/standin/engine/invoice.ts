import type { Ledger } from "./ledger.ts";
import type { Organisation, Workspace } from "./organisation.ts";
import { PAGE, type PdfText, pdfOf } from "./pdf.ts";
import type { SandboxLedger } from "./sandboxes.ts";

/** A volume tier up to this quantity, and its price in millionths of a dollar. */
interface InvoiceTier {
  readonly upTo: number;
  readonly micros: number;
}

/** Tiers and lines of the invoices. A published picture of 2024 has these tiers, for each workspace; tax and seats are our guess. */
export interface InvoiceTerms {
  traces: readonly InvoiceTier[];
  longlived: readonly InvoiceTier[];
  /** True: the tiers count the workspaces together, by day, and within a day by workspace id. */
  tiersOfOrganisation: boolean;
  seats: { readonly count: number; readonly cents: number };
  taxPercent: number;
}

export interface Planted {
  overcharge?: { readonly workspaceId: string; readonly cents: number };
  lateUpgrades?: { readonly workspaceId: string; readonly traces: number };
  creditCents?: number;
  seatFrom?: number;
}

interface InvoiceOptions {
  readonly organisation: Organisation;
  readonly ledger: Ledger;
  readonly sandboxLedger: SandboxLedger;
}

const DAY = 86_400_000;
const LIST: readonly InvoiceTier[] = [{ upTo: 10_000, micros: 0 }];
/** Prices of the compute and storage units of sandboxes (secondary source). */
const UNITS = [
  { measure: "lcu", name: "Sandbox Compute (LCU)", micros: 1_500_000 },
  { measure: "lsu", name: "Sandbox Storage (LSU)", micros: 1_000_000 },
] as const;

interface Row {
  readonly text: string;
  readonly period?: string;
  readonly quantity?: string;
  readonly price?: string;
  readonly cents?: number;
  readonly indent?: number;
}

/** Issues invoices as PDF. The platform has them on a page alone; the layout is that of the picture, as far as it shows it. */
export class Invoices {
  readonly terms: InvoiceTerms = {
    traces: [...LIST, { upTo: Number.POSITIVE_INFINITY, micros: 500 }],
    longlived: [...LIST, { upTo: Number.POSITIVE_INFINITY, micros: 4_500 }],
    tiersOfOrganisation: false,
    seats: { count: 5, cents: 3_900 },
    taxPercent: 19,
  };
  readonly planted: Planted = {};
  readonly #options: InvoiceOptions;

  constructor(options: InvoiceOptions) {
    this.#options = options;
  }

  /** `month`: such as `2026-10`. It charges traces of that month, and seats of the next one in advance (documented). */
  issue(month: string): string {
    const [year = 0, number = 0] = month.split("-").map(Number);
    const [start, end] = [Date.UTC(year, number - 1), Date.UTC(year, number)];
    const rows = [...this.#usageRows(start, end), ...this.#seatRows(start, end), ...this.#creditRows()];
    const subtotal = rows.reduce(
      (sum, { indent, cents = 0 }) => (indent === TIER_INDENT ? sum : sum + cents),
      0,
    );
    const tax = Math.round((subtotal * this.terms.taxPercent) / 100);
    const { name, id } = this.#options.organisation;
    return pdfOf(
      paged(
        [
          ["Invoice number", `STANDIN-${month}-0001`],
          ["Date of issue", dayShown(end)],
          ["Date due", dayShown(end + 30 * DAY)],
          ["Terms", "Net 30"],
          ["Issuer", "Stand-in, Inc."],
          ["Bill to", name],
          ["Organization ID", id],
          ["Currency", "USD"],
        ],
        [
          ...rows,
          { text: "Subtotal", cents: subtotal },
          { text: `Tax (${this.terms.taxPercent}%)`, cents: tax },
          { text: "Total", cents: subtotal + tax },
          { text: "Amount due", cents: subtotal + tax },
        ],
      ),
    );
  }

  #usageRows(start: number, end: number): Row[] {
    const { organisation, sandboxLedger } = this.#options;
    const period = daysShown(start, end);
    const { overcharge } = this.planted;
    const workspaces = [...organisation.workspaces].sort((one, other) => (one.id < other.id ? -1 : 1));
    const traces = this.#tierCounts(workspaces, null, [start, end]);
    const longlived = this.#tierCounts(workspaces, "longlived", [start, end]);
    return workspaces.flatMap((workspace) => {
      const over = overcharge?.workspaceId === workspace.id ? overcharge.cents : 0;
      const hours = sandboxLedger.hours({ workspaceId: workspace.id, start, end });
      const rows = [
        ...tierRows("LangSmith Traces", period, {
          counts: traces.get(workspace.id) ?? [],
          tiers: this.terms.traces,
          over,
        }),
        ...tierRows("LangSmith Traces (Extended Data Retention Upgrades)", period, {
          counts: longlived.get(workspace.id) ?? [],
          tiers: this.terms.longlived,
          over: 0,
        }),
        ...UNITS.flatMap(({ measure, name, micros }): Row[] => {
          const millionths = hours.reduce((sum, hour) => sum + hour[measure], 0);
          const [quantity, price] = [decimal(millionths), decimal(micros)];
          const cents = centsOf(BigInt(millionths) * BigInt(micros), 10n ** 10n);
          return millionths === 0 ? [] : [{ text: name, period, quantity, price, cents, indent: 8 }];
        }),
      ];
      return rows.length === 0 ? [] : [{ text: `tenant_id: ${workspace.id}` }, ...rows];
    });
  }

  #tierCounts(
    workspaces: readonly Workspace[],
    tier: "longlived" | null,
    [start, end]: readonly [number, number],
  ): Map<string, number[]> {
    const { organisation, ledger } = this.#options;
    const tiers = tier === null ? this.terms.traces : this.terms.longlived;
    const days = Math.round((end - start) / DAY);
    const edges = Array.from({ length: days + 1 }, (_, n) => start + n * DAY);
    const daily = workspaces.map((workspace) => {
      const streams = organisation.streams.filter(({ project }) => project.workspace === workspace);
      const counts = streams.map((stream) => ledger.counts(stream, edges, tier));
      return edges.slice(1).map((_, day) => counts.reduce((sum, count) => sum + (count[day] ?? 0), 0));
    });
    const counted = new Map(workspaces.map(({ id }) => [id, tiers.map(() => 0)]));
    let before = 0;
    const fill = (id: string, traces: number) => {
      const counts = counted.get(id) ?? [];
      tiers.forEach(({ upTo }, n) => {
        const from = tiers[n - 1]?.upTo ?? 0;
        counts[n] = (counts[n] ?? 0) + Math.max(0, Math.min(before + traces, upTo) - Math.max(before, from));
      });
      before += traces;
    };
    if (this.terms.tiersOfOrganisation) {
      for (let day = 0; day < days; day += 1)
        for (const [n, { id }] of workspaces.entries()) fill(id, daily[n]?.[day] ?? 0);
      return counted;
    }
    workspaces.forEach(({ id }, n) => {
      before = 0;
      fill(
        id,
        (daily[n] ?? []).reduce((sum, one) => sum + one, 0),
      );
    });
    return counted;
  }

  /** An added seat is charged by its share of the days (documented: within a day). */
  #seatRows(start: number, end: number): Row[] {
    const { count, cents } = this.terms.seats;
    const next = new Date(end);
    const nextEnd = Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1);
    const { seatFrom } = this.planted;
    const added = seatFrom === undefined ? undefined : start + (seatFrom - 1) * DAY;
    const share = added === undefined ? 0 : Math.round((cents * (end - added)) / (end - start));
    return [
      ...(count === 0
        ? []
        : [
            {
              text: "Plus seats",
              period: daysShown(end, nextEnd),
              quantity: String(count),
              price: dollars(cents),
              cents: count * cents,
            },
          ]),
      ...(added === undefined
        ? []
        : [
            {
              text: "Plus seats (prorated)",
              period: daysShown(added, end),
              quantity: "1",
              price: dollars(share),
              cents: share,
            },
          ]),
    ];
  }

  #creditRows(): Row[] {
    const { creditCents = 0 } = this.planted;
    return creditCents === 0 ? [] : [{ text: "Service credit", cents: -creditCents }];
  }
}

const TIER_INDENT = 16;

/** A sum row above its tiers. Each tier is rounded half up to cents (the picture). */
function tierRows(
  name: string,
  period: string,
  { counts, tiers, over }: { counts: readonly number[]; tiers: readonly InvoiceTier[]; over: number },
): Row[] {
  const used = tiers.flatMap(({ upTo, micros }, n): Row[] => {
    const from = tiers[n - 1]?.upTo ?? 0;
    const count = counts[n] ?? 0;
    const isLast = upTo === Number.POSITIVE_INFINITY;
    const text = isLast
      ? n === 0
        ? "Tier 1"
        : `Tier ${n + 1} (> ${from})`
      : `Tier ${n + 1} (${from} - ${upTo})`;
    const cents = centsOf(BigInt(count) * BigInt(micros), 10_000n);
    return count === 0
      ? []
      : [{ text, quantity: String(count), price: decimal(micros), cents, indent: TIER_INDENT }];
  });
  const last = used.at(-1);
  if (last === undefined) return [];
  const charged = [...used.slice(0, -1), { ...last, cents: (last.cents ?? 0) + over }];
  const cents = charged.reduce((sum, row) => sum + (row.cents ?? 0), 0);
  return [{ text: name, period, cents, indent: 8 }, ...charged];
}

function centsOf(amount: bigint, perCent: bigint): number {
  return Number((2n * amount + perCent) / (2n * perCent));
}

function decimal(micros: number): string {
  const digits = String(micros).padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, "");
}

function dollars(cents: number): string {
  return `${cents < 0 ? "-" : ""}${(Math.abs(cents) / 100).toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ",")}`;
}

const DAY_FORMAT = new Intl.DateTimeFormat("en-US", {
  month: "short",
  day: "numeric",
  year: "numeric",
  timeZone: "UTC",
});

function dayShown(at: number): string {
  return DAY_FORMAT.format(at);
}

function daysShown(start: number, end: number): string {
  return `${dayShown(start).replace(/,.*/, "")} – ${dayShown(end - DAY)}`;
}

const LEFT = 40;
const COLUMNS = { period: 290, quantity: 440, price: 495, amount: 555 } as const;
const ROWS = 42;
const PITCH = 16;

function paged(fields: readonly (readonly [string, string])[], rows: readonly Row[]): PdfText[][] {
  const pages = Array.from({ length: Math.ceil((rows.length + fields.length) / ROWS) }, (_, n) =>
    rows.slice(Math.max(0, n * ROWS - fields.length), (n + 1) * ROWS - fields.length),
  );
  return pages.map((onPage, n) => {
    const texts: PdfText[] = [{ text: `Page ${n + 1} of ${pages.length}`, x: LEFT, y: 24 }];
    let y = PAGE.height - 50;
    if (n === 0) {
      texts.push({ text: "Invoice", x: LEFT, y, size: 18 });
      for (const [label, value] of fields) {
        y -= PITCH;
        texts.push({ text: label, x: LEFT, y }, { text: value, x: 150, y });
      }
    }
    y -= 2 * PITCH;
    const right = (x: number, text: string | undefined) =>
      text === undefined ? [] : [{ text, x, y, alignsRight: true }];
    texts.push(
      { text: "Description", x: LEFT, y },
      { text: "Period", x: COLUMNS.period, y },
      ...right(COLUMNS.quantity, "Quantity"),
      ...right(COLUMNS.price, "Unit price"),
      ...right(COLUMNS.amount, "Amount"),
    );
    for (const { text, period, quantity, price, cents, indent = 0 } of onPage) {
      y -= PITCH;
      texts.push({ text, x: LEFT + indent, y });
      if (period !== undefined) texts.push({ text: period, x: COLUMNS.period, y });
      texts.push(
        ...right(COLUMNS.quantity, quantity),
        ...right(COLUMNS.price, price && `$${price}`),
        ...right(COLUMNS.amount, cents === undefined ? undefined : `$${dollars(cents)}`.replace("$-", "-$")),
      );
    }
    return texts;
  });
}

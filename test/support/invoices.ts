import { type Amount, amountOf, amountText } from "../../src/core/domain/usage/amount.ts";
import type { Invoice, InvoiceLine } from "../../src/features/invoice/invoice.ts";

/** The published picture of 2024: each tier is rounded half up to cents. Free tiers stand in each workspace. */
const PICTURE = {
  workspace: "00000000-0000-4000-8000-000000000001",
  traces: [
    ["Tier 1 (0 - 10000)", "10000", "0", "0.00"],
    ["Tier 2 (> 10000)", "108963", "0.0005", "54.48"],
  ],
  extended: [
    ["Tier 1 (0 - 10000)", "10000", "0", "0.00"],
    ["Tier 2 (> 10000)", "33137", "0.0045", "149.12"],
  ],
} as const;

/** What a reading must agree with, in short: one text for each line. */
export function shortLines({ lines }: Pick<Invoice, "lines">): string[] {
  const text = (amount: Amount | null) => (amount === null ? "-" : amountText(amount));
  return lines.map((line: InvoiceLine) =>
    [
      line.isSum ? "sum" : line.partOf === null ? "line" : `part of ${line.partOf}`,
      line.kind,
      line.text,
      text(line.quantity),
      text(line.unitPrice),
      text(line.amount),
      line.periodStart ?? "-",
      line.periodEnd ?? "-",
      line.workspace ?? "-",
    ].join(" | "),
  );
}

/** How the picture reads, whatever the form: with workspace, October 2026, and 19 % tax. */
export const PICTURE_LINES = [
  `sum | usage | LangSmith Traces | - | - | 54.48 | 2026-10-01 | 2026-11-01 | ${PICTURE.workspace}`,
  `part of 0 | usage | Tier 1 (0 - 10000) | 10000 | 0 | 0 | 2026-10-01 | 2026-11-01 | ${PICTURE.workspace}`,
  `part of 0 | usage | Tier 2 (> 10000) | 108963 | 0.0005 | 54.48 | 2026-10-01 | 2026-11-01 | ${PICTURE.workspace}`,
  `sum | usage | LangSmith Traces (Extended Data Retention Upgrades) | - | - | 149.12 | 2026-10-01 | 2026-11-01 | ${PICTURE.workspace}`,
  `part of 3 | usage | Tier 1 (0 - 10000) | 10000 | 0 | 0 | 2026-10-01 | 2026-11-01 | ${PICTURE.workspace}`,
  `part of 3 | usage | Tier 2 (> 10000) | 33137 | 0.0045 | 149.12 | 2026-10-01 | 2026-11-01 | ${PICTURE.workspace}`,
  "line | tax | Tax (19%) | - | - | 38.68 | - | - | -",
];

export const PICTURE_TOTAL = amountOf("242.28");

/** The picture in our own columns. */
export function pictureCsv(): string {
  const period = `2026-10-01,2026-11-01,${PICTURE.workspace}`;
  const lines = (text: string, sum: string, parts: readonly (readonly string[])[]) => [
    `"${text}",,,,${sum},${period}`,
    ...parts.map(([part, quantity, price, amount]) => `${part},yes,${quantity},${price},${amount},${period}`),
  ];
  return [
    "number,issuer,issued_on,due_on,currency,account,kind,text,is_part,quantity,unit_price,amount,period_start,period_end,workspace",
    ...lines("LangSmith Traces", "54.48", PICTURE.traces).map((line, n) =>
      n === 0 ? `INV-1,"LangChain, Inc.",2026-11-01,2026-12-01,USD,Acme,,${line}` : `,,,,,,,${line}`,
    ),
    ...lines("LangSmith Traces (Extended Data Retention Upgrades)", "149.12", PICTURE.extended).map(
      (line) => `,,,,,,,${line}`,
    ),
    ",,,,,,tax,Tax (19%),,,,38.68,,,",
    ",,,,,,subtotal,,,,,203.60,,,",
    ",,,,,,total,,,,,242.28,,,",
    "",
  ].join("\n");
}

/** The picture as a page, with texts that wrap, and labels above their values. */
export function pictureHtml(): string {
  const cells = (row: readonly string[]) =>
    `<tr>${row.map((cell) => `<td>${cell.replace("<", "&lt;").replace(">", "&gt;")}</td>`).join("")}</tr>`;
  const tiers = (parts: readonly (readonly string[])[]) => tierCells(parts).map(cells).join("");
  return `<style>
    body { font: 12px "DejaVu Sans", sans-serif; margin: 40px } table { border-collapse: collapse; width: 640px }
    td, th { padding: 6px 4px; text-align: right; vertical-align: top } td:first-child, th:first-child { text-align: left; width: 240px }
    dl { display: grid; grid-template-columns: repeat(3, 200px) } dt { grid-row: 1; margin-bottom: 4px } dd { grid-row: 2; margin: 0 }
    thead { display: table-header-group }
  </style><h1>Invoice</h1>
  <p>Invoice number: INV-1</p><p>Issuer: LangChain, Inc.</p>
  <dl><dt>Bill to</dt><dd>Acme</dd><dt>Date of issue</dt><dd>November 1, 2026</dd><dt>Date due</dt><dd>December 1, 2026</dd></dl>
  <table><thead><tr><th>Description</th><th>Qty</th><th>Unit price</th><th>Amount</th></tr></thead><tbody>
  ${cells(["Oct 1 – Oct 31, 2026", "", "", ""])}${cells([`tenant_id: ${PICTURE.workspace}`, "", "", ""])}
  ${cells(["LangSmith Traces", "", "", "$54.48"])}${tiers(PICTURE.traces)}
  ${cells(["LangSmith Traces (Extended Data Retention Upgrades)", "", "", "$149.12"])}${tiers(PICTURE.extended)}
  ${cells(["Subtotal", "", "", "$203.60"])}${cells(["Tax (19%)", "", "", "$38.68"])}${cells(["Total", "", "", "$242.28 USD"])}
  </tbody></table>`;
}

/** The picture as a table of cells, below what an invoice says at its head. */
export const PICTURE_TABLE: readonly (readonly string[])[] = [
  ["Invoice number", "INV-1"],
  ["Date of issue: November 1, 2026"],
  ["Date due", "December 1, 2026"],
  ["Issuer: LangChain, Inc."],
  ["Bill to", "Acme"],
  ["Description", "Qty", "Unit price", "Amount"],
  ["Oct 1 – Oct 31, 2026"],
  [`tenant_id: ${PICTURE.workspace}`],
  ["LangSmith Traces", "", "", "$54.48"],
  ...tierCells(PICTURE.traces),
  ["LangSmith Traces (Extended Data Retention Upgrades)", "", "", "$149.12"],
  ...tierCells(PICTURE.extended),
  ["Subtotal", "", "", "$203.60"],
  ["Tax (19%)", "", "", "$38.68"],
  ["Total", "", "", "$242.28"],
  ["Amount due", "", "", "$242.28 USD"],
];

function tierCells(tiers: readonly (readonly string[])[]): string[][] {
  return tiers.map(([text = "", quantity = "", price = "", amount = ""]) => [
    text,
    Number(quantity).toLocaleString("en-US"),
    `$${price}`,
    `$${amount}`,
  ]);
}

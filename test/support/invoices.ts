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

import type { Command } from "commander";
import { counted } from "../../core/base/printable.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import { EXIT } from "../../terminal/exit.ts";
import { withSource } from "../../terminal/options.ts";
import { commandActor, inSession, type Session } from "../../terminal/session.ts";
import { readMatchLines } from "./comparison.store.ts";
import { explainInvoice, invoiceNumbered, settleInvoice } from "./explain-invoice.ts";
import { describeExplanation, explanationData, settlementText } from "./explanation.ts";
import { SHIPPED_RULES } from "./rule.ts";
import { readRuleFile, rulesCsv } from "./rule-file.ts";
import { replaceRules, storedRules } from "./rules.store.ts";

export const explainExamples = [
  ["invoice explain INV-2026-11", "why it is higher or lower than our bill"],
  ["invoice settle INV-2026-11 --reason 'credited in December'", "accepts what is not explained"],
  ["invoice rules", "which lines charge which usage"],
] as const;

export function defineExplain(invoice: Command): void {
  withSource(invoice.command("explain <number>"))
    .description("show why an invoice differs from our bill, cause by cause")
    .option("--lines", "also each line beside our bill", false)
    .action(inSession(explain));
  withSource(invoice.command("settle <number>"))
    .description("accept an invoice as explained, for good; a later settlement corrects an earlier one")
    .option("--reason <text>", "why the part that is not explained is accepted")
    .action(inSession(settle));
  invoice
    .command("rules [file]")
    .description(
      "replace the rules of lines by those of a CSV file; without a file, print all rules in force",
    )
    .action(inSession(rules));
}

interface Flags {
  readonly source?: string;
  readonly lines?: boolean;
  readonly reason?: string;
}

async function explain(
  { output, ...session }: Session,
  { source, lines = false }: Flags,
  number = "",
): Promise<number> {
  const store = await session.migratedStore();
  const invoice = await invoiceNumbered(store.db, { number, source });
  const { suggestions, ...compared } = await explainInvoice(store, invoice);
  const all = lines || output.json ? await readMatchLines(store.db, invoice) : undefined;
  output.data({ ...explanationData(compared), lines: all, suggestions }, () =>
    describeExplanation(compared, { lines: all, suggestions }),
  );
  const isOpen = compared.causes.some(({ cause, isTolerated }) => cause === "unexplained" && !isTolerated);
  return compared.settlement === null && isOpen ? EXIT.mismatch : EXIT.done;
}

async function settle(
  { output, ...session }: Session,
  { source, reason }: Flags,
  number = "",
): Promise<undefined> {
  const store = await session.migratedStore();
  const invoice = await invoiceNumbered(store.db, { number, source });
  const settled = await settleInvoice(store, invoice, { reason: reason?.trim() || null, by: commandActor() });
  output.data(explanationData(settled), () => settlementText(settled) ?? "");
}

async function rules({ output, ...session }: Session, _: object, file?: string): Promise<undefined> {
  const given = file === undefined ? undefined : await readRuleFile(file);
  const store = await session.migratedStore();
  if (given === undefined) {
    const inForce = [...(await storedRules(store.db)), ...SHIPPED_RULES];
    return output.data(inForce, rulesCsv);
  }
  await store.transaction(async ({ db }) => {
    await replaceRules(db, given);
    const detail = `${file}: ${counted(given.length, "rule")}`;
    await recordAction(db, commandActor(), { sourceId: null, action: "invoice.rules", detail });
  });
  return output.data(
    { file, rules: given.length },
    () =>
      `${file}: ${counted(given.length, "rule")} in force, before the ${SHIPPED_RULES.length} that the program ships.`,
  );
}

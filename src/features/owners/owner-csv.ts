import { refuseGiven } from "../../core/base/given-file.ts";
import { counted } from "../../core/base/printable.ts";
import { type CsvRow, csvRows } from "../../terminal/csv-rows.ts";
import { csvCell } from "../export/table-file.ts";
import { type Budget, type OwnerFile, type OwnerRule, WHOLE_SHARE } from "./owner.ts";

export interface OwnerForm {
  readonly data: unknown;
  readonly placeOf: (path: readonly (string | number)[], isKey: boolean) => string;
  readonly lineOf: (kind: "rules" | "budgets" | "routes", at: number) => number;
}

interface Entry {
  readonly data: Record<string, unknown>;
  readonly rows: CsvRow[];
}

/** A row with one of these columns is a budget. */
const OF_BUDGETS = ["per", "traces", "amount", "currency", "warn_at"];
/** A row that differs from the row above only in these is another share of its rule. */
const OF_SHARES = ["owner", "cost_center", "share"];

/**
 * Reads a CSV file with a row for each rule, share or budget. `keys` are the columns, named as in the YAML file. Error:
 * `file_invalid`.
 */
export function csvForm(file: string, content: string, keys: readonly string[]): OwnerForm {
  const rows = rowsOf(file, content, keys);
  const divided = rows.filter(({ cells }) => cells.divide_by !== undefined);
  const [first] = divided;
  const differs = divided.find(({ cells }) => cells.divide_by !== first?.cells.divide_by);
  if (differs !== undefined)
    refuseGiven(file, [`line ${differs.line}, column "divide_by": line ${first?.line} has another one`]);
  const entries = { rules: [] as Entry[], budgets: [] as Entry[] };
  for (const row of rows) {
    const { divide_by: _, ...cells } = row.cells;
    if (Object.keys(cells).length === 0) continue;
    if (OF_BUDGETS.some((name) => name in cells))
      entries.budgets.push({ data: budgetOf(cells), rows: [row] });
    else addRule(entries.rules, { ...row, cells });
  }
  const find = ([kind, at]: readonly (string | number)[]) =>
    kind === "rules" || kind === "budgets" ? entries[kind][Number(at)] : undefined;
  return {
    data: {
      ...(first === undefined ? {} : { divide_by: first.cells.divide_by }),
      rules: entries.rules.map(({ data }) => data),
      budgets: entries.budgets.map(({ data }) => data),
    },
    placeOf: (path) => {
      const row = find(path)?.rows[path[2] === "shares" ? Number(path[3] ?? 0) : 0] ?? first;
      const name = String(path.findLast((part) => typeof part === "string")).replace(/^shares$/, "share");
      return `line ${row?.line ?? 1}${keys.includes(name) ? `, column "${name}"` : ""}`;
    },
    lineOf: (kind, at) => find([kind, at])?.rows[0]?.line ?? 1,
  };
}

function addRule(rules: Entry[], row: CsvRow): void {
  const { tag, owner, cost_center, share, ...about } = row.cells;
  const payee = {
    ...(owner === undefined ? {} : { owner }),
    ...(cost_center === undefined ? {} : { cost_center }),
  };
  const [, key, value] = /^([^=]+)=(.+)$/s.exec(tag ?? "") ?? [];
  const matched = {
    ...about,
    ...(tag === undefined ? {} : { tag: key === undefined ? tag : { [key]: value } }),
  };
  if (share === undefined) {
    rules.push({ data: { ...matched, ...payee }, rows: [row] });
    return;
  }
  const above = rules.at(-1);
  if (above?.data.shares !== undefined && textOf(above.rows[0] as CsvRow) === textOf(row)) {
    (above.data.shares as unknown[]).push({ ...payee, share });
    above.rows.push(row);
  } else rules.push({ data: { ...matched, shares: [{ ...payee, share }] }, rows: [row] });
}

function textOf({ cells }: CsvRow): string {
  return JSON.stringify(Object.entries(cells).filter(([name]) => !OF_SHARES.includes(name)));
}

function budgetOf({ warn_at, ...cells }: CsvRow["cells"]): Record<string, unknown> {
  return { ...cells, ...(warn_at === undefined ? {} : { warn_at: warn_at.trim().split(/[\s;]+/) }) };
}

function rowsOf(file: string, content: string, columns: readonly string[]): CsvRow[] {
  const numbers = ["share", "traces", "amount"];
  return csvRows(file, content, { columns, numbers }).map(({ line, cells }) => ({
    line,
    cells: Object.fromEntries(Object.entries(cells).filter(([, cell]) => cell !== "")),
  }));
}

type Cells = Readonly<Record<string, string | null>>;

export function ownersCsv(
  { divideBy, rules, budgets, routes, content }: OwnerFile,
  keys: readonly string[],
): { readonly csv: string; readonly left: readonly string[] } {
  const left: string[] = [];
  const rows: Cells[] = [];
  let above: string | undefined;
  for (const rule of rules) {
    const about = aboutOf(rule);
    // In CSV, two such rules in sequence would be one rule. So only the first is written.
    const divided = rule.shares.length > 1 ? JSON.stringify(about) : undefined;
    if (rule.tag?.key.includes("="))
      left.push(
        `Line ${rule.line}: a tag is written KEY=VALUE, so a key with = cannot be: the rule is left out.`,
      );
    else if (divided !== undefined && divided === above)
      left.push(
        `Line ${rule.line}: the rule above is about the same, so this one decides nothing: it is left out.`,
      );
    else {
      rows.push(...rule.shares.map((share) => ({ ...about, ...payeeOf(share, rule) })));
      above = divided;
    }
  }
  rows.push(...budgets.map(cellsOfBudget));
  if (divideBy !== "project") rows.splice(0, 1, { ...rows[0], divide_by: divideBy });
  if (routes.length > 0)
    left.push(
      `${counted(routes.length, "route")} left out: ${routes.map(({ name }) => name).join(", ")}. Only a YAML file has routes, so a CSV file that is applied ends them.`,
    );
  if (/(^|\s)#/m.test(content)) left.push("Comments are left out.");
  const header = keys.filter((key) => rows.some((row) => row[key] != null));
  const lines = rows.map((row) => header.map((key) => csvCell(row[key] ?? null)).join(","));
  return { csv: `${[header.join(",") || "owner", ...lines].join("\n")}\n`, left };
}

function aboutOf({ source, workspace, of, name, tag, from, to }: OwnerRule): Cells {
  return {
    source,
    workspace,
    name,
    from,
    to,
    ...(of === null ? {} : { [of.dimension]: of.id }),
    ...(tag === null
      ? {}
      : tag.value === null
        ? { owner_from_tag: tag.key }
        : { tag: `${tag.key}=${tag.value}` }),
  };
}

function payeeOf({ owner, costCenter, share }: OwnerRule["shares"][number], { shares }: OwnerRule): Cells {
  return { owner, cost_center: costCenter, share: shares.length === 1 ? null : String(share / WHOLE_SHARE) };
}

function cellsOfBudget({ source, per, of, currency, amount, warnAt }: Budget): Cells {
  return {
    source,
    currency,
    per: per === "month" ? null : per,
    warn_at: warnAt.join(";"),
    ...(of === null ? {} : { [of.kind]: of.id }),
    [currency === null ? "traces" : "amount"]: amount,
  };
}

import "../../core/base/validation.ts";
import { type Document, isMap, isScalar, LineCounter, parseDocument, type YAMLParseError } from "yaml";
import { z } from "zod";
import { type Problem, readGiven, refuseGiven } from "../../core/base/given-file.ts";
import { didYouMean } from "../../core/base/spelling.ts";
import { isDay } from "../../core/domain/time/days.ts";
import {
  BUDGET_PERIODS,
  type Budget,
  DIVIDING_DIMENSIONS,
  type DividingDimension,
  NO_COST_CENTER,
  OWNED_DIMENSIONS,
  type OwnedDimension,
  type OwnerFile,
  type OwnerRule,
  type OwnerShare,
  UNALLOCATED,
  WHOLE_SHARE,
} from "./owner.ts";
import { csvForm, type OwnerForm, ownersCsv } from "./owner-csv.ts";
import { problemsOfRoutes, routeOf, routeSchema } from "./owner-file-routes.ts";

/** Blanks at the ends stay: a tag or a name may have them. */
const text = z
  .string()
  .regex(/\S/, "is empty")
  .max(1000, "has more than 1,000 characters")
  .refine((value) => !/\p{Cc}/u.test(value), "has a control character");
const owner = text.refine((value) => value !== UNALLOCATED, "is reserved for usage without an owner");
const costCenter = text.refine(
  (value) => value !== NO_COST_CENTER,
  "is reserved for usage without a cost centre: leave it out",
);
const day = text.refine(isDay, "is not a day such as 2026-10-01");
const shareText = text.refine(
  (value) => /^(1(\.0{1,4})?|0?\.\d{1,4})$/.test(value) && Number(value) > 0,
  "is not a share: more than 0, at most 1, with at most four digits after the point, such as 0.25",
);
const ruleSchema = z.strictObject({
  source: text.optional(),
  workspace: text.optional(),
  ...(Object.fromEntries(OWNED_DIMENSIONS.map((one) => [one, text.optional()])) as Record<
    OwnedDimension,
    z.ZodOptional<typeof text>
  >),
  name: text.optional(),
  tag: z
    .record(text, text, "is not a key and its value, such as {Application: search}")
    .refine((tags) => Object.keys(tags).length === 1, "names more than one tag: give each a rule of its own")
    .optional(),
  owner_from_tag: text.optional(),
  owner: owner.optional(),
  cost_center: costCenter.optional(),
  shares: z
    .array(z.strictObject({ owner, cost_center: costCenter.optional(), share: shareText }))
    .min(1, "is empty")
    .optional(),
  from: day.optional(),
  to: day.optional(),
});
type RawRule = z.output<typeof ruleSchema>;

const amountText = text.refine(
  (value) => /^\d{1,18}(\.\d{1,10})?$/.test(value) && Number(value) > 0,
  "is not an amount: a plain number above 0, such as 250000 or 99.5",
);
const budgetSchema = z.strictObject({
  source: text.optional(),
  owner: text.optional(),
  workspace: text.optional(),
  project: text.optional(),
  per: z.enum(BUDGET_PERIODS, `is not one of ${BUDGET_PERIODS.join(", ")}`).default("month"),
  // A point may be a thousands separator, as in 250.000.
  traces: text
    .refine(
      (value) => /^\d{1,18}$/.test(value) && Number(value) > 0,
      "is not a whole number of traces such as 250000",
    )
    .optional(),
  amount: amountText.optional(),
  currency: text.regex(/^[A-Z]{3}$/, "is not a currency such as USD").optional(),
  warn_at: z
    .array(
      text.regex(/^[1-9]\d{0,2}$/, "is not a whole number of per cents such as 80").transform(Number),
      "is not a list of per cents such as [80, 100]",
    )
    .min(1, "is empty")
    .default([50, 75, 90, 100]),
});
type RawBudget = z.output<typeof budgetSchema>;

const fileSchema = z.strictObject({
  divide_by: z
    .enum(DIVIDING_DIMENSIONS, `is not one of ${DIVIDING_DIMENSIONS.join(", ")}`)
    .default("project"),
  rules: z.array(ruleSchema, "is not a list of rules"),
  budgets: z.array(budgetSchema, "is not a list of budgets").default([]),
  routes: z.array(routeSchema, "is not a list of routes").max(100, "has more than 100 routes").default([]),
});
const NAMES = {
  rules: [...Object.keys(ruleSchema.shape), "share"],
  budgets: Object.keys(budgetSchema.shape),
  routes: Object.keys(routeSchema.shape),
} satisfies Readonly<Record<string, readonly string[]>>;

/** Only a YAML file has routes. */
const CSV_COLUMNS = [...new Set(["divide_by", ...NAMES.rules, ...NAMES.budgets])].filter(
  (name) => name !== "shares",
);

/** Reads an owner file (docs/owners.md). Errors: `file_unreadable`; `file_invalid`, with line and column of every problem. */
export async function readOwnerFile(file: string): Promise<OwnerFile> {
  return parseOwners(
    file,
    await readGiven(file, "an owner file in YAML or CSV and in UTF-8, as in docs/owners.md"),
  );
}

export function parseOwners(file: string, content: string): OwnerFile {
  // Excel's "Unicode Text" is separated by tabs and ends in .txt.
  const isTable = /\.csv$/i.test(file) || /^"?\w+"?\t/.test(content);
  const form = isTable ? csvForm(file, content, CSV_COLUMNS) : yamlForm(file, content);
  const parsed = fileSchema.safeParse(form.data);
  const problems = parsed.success
    ? [
        ...parsed.data.rules.flatMap((rule, at) => problemsOf(rule, at, parsed.data.divide_by)),
        ...parsed.data.budgets.flatMap(problemsOfBudget),
        ...problemsOfRoutes(parsed.data.routes),
      ]
    : parsed.error.issues.flatMap(problemsOfIssue);
  refuseGiven(
    file,
    problems.map(({ path, why, isKey = false }) => `${form.placeOf(path, isKey)}: ${why}`),
  );
  const { divide_by: divideBy, rules, budgets, routes } = parsed.data as z.output<typeof fileSchema>;
  return {
    content,
    divideBy,
    budgets: budgets.map((budget, at) => budgetOf(budget, form.lineOf("budgets", at))),
    rules: rules.map((rule, at) => ruleOf(rule, form.lineOf("rules", at))),
    routes: routes.map((route, at) => routeOf(route, form.lineOf("routes", at))),
  };
}

export function ownerFileAsCsv(content: string): ReturnType<typeof ownersCsv> {
  if (!isMap(parseDocument(content, { schema: "failsafe" }).contents)) return { csv: content, left: [] };
  return ownersCsv(parseOwners("the owner file", content), CSV_COLUMNS);
}

function yamlForm(file: string, content: string): OwnerForm {
  const lines = new LineCounter();
  // Text only, so ids of digits and shares stay as written.
  const document = parseDocument(content, { schema: "failsafe", lineCounter: lines, uniqueKeys: true });
  refuseGiven(
    file,
    document.errors.map((error) => `${placeOf(lines, error.pos[0])}: ${reasonOf(error)}`),
  );
  return {
    data: plainOf(file, document),
    placeOf: (path, isKey) => placeOf(lines, isKey ? keyOffsetOf(document, path) : offsetOf(document, path)),
    lineOf: (kind, at) => lines.linePos(offsetOf(document, [kind, at])).line,
  };
}

/** The parser is recursive and fails on a file that is nested too deep. */
function reasonOf({ code, message }: YAMLParseError): string {
  return code === "RESOURCE_EXHAUSTION" ? "it is nested too deeply" : (message.split("\n")[0] ?? "");
}

function plainOf(file: string, document: Document): unknown {
  if (document.contents === null) return {};
  try {
    return document.toJS();
  } catch (error) {
    // An alias has no anchor, or aliases would make a small file huge.
    refuseGiven(file, [(error as Error).message]);
  }
}

function placeOf(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `line ${line}, column ${col}`;
}

function offsetOf(document: Document, path: readonly (string | number)[]): number {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as
      | { range?: [number, number, number] }
      | undefined;
    if (node?.range) return node.range[0];
  }
  return document.contents?.range?.[0] ?? 0;
}

function keyOffsetOf(document: Document, path: readonly (string | number)[]): number {
  const within = document.getIn(path.slice(0, -1), true);
  const keys = isMap(within) ? within.items.map(({ key }) => key) : [];
  const key = keys.find((one) => isScalar(one) && one.value === path.at(-1));
  return (isScalar(key) ? key.range?.[0] : undefined) ?? offsetOf(document, path);
}

function problemsOfIssue({ path, message, ...issue }: z.core.$ZodIssue): Problem[] {
  const at = path.filter((part) => typeof part !== "symbol");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const known = (NAMES as Readonly<Record<string, readonly string[]>>)[String(at[0])];
      const hint = didYouMean(key, known ?? Object.keys(fileSchema.shape));
      return { path: [...at, key], isKey: true, why: `${JSON.stringify(key)} is not known${hint}` };
    });
  }
  const name = at.findLast((part) => typeof part === "string");
  return [{ path: at, why: `${name === undefined ? "the file" : `"${name}"`} ${message}` }];
}

function problemsOf(rule: RawRule, at: number, divideBy: DividingDimension): Problem[] {
  const problems: Problem[] = [];
  const add = (key: string, why: string) => problems.push({ path: ["rules", at, key], why });
  const about = [...OWNED_DIMENSIONS, "name", "tag", "owner_from_tag"].filter((key) => key in rule);
  const [first, second] = about;
  if (second !== undefined) {
    add(
      second,
      `a rule is about one thing, and this one has "${first}" and "${second}". Give each a rule of its own`,
    );
  }
  const payers = ["owner", "shares", "owner_from_tag"].filter((key) => key in rule);
  if (payers.length === 0) add("", `nobody pays: give "owner", "shares" or "owner_from_tag"`);
  if (payers.length > 1)
    add(payers[1] as string, `give one of ${payers.map((key) => `"${key}"`).join(" and ")}`);
  if (rule.shares !== undefined && rule.cost_center !== undefined) {
    add("cost_center", `each of the shares has its own "cost_center"`);
  }
  for (const dimension of DIVIDING_DIMENSIONS) {
    if (dimension === divideBy || rule[dimension] === undefined) continue;
    add(
      dimension,
      `traces are divided by ${divideBy}, so a rule about one ${dimension} decides nothing. The platform does not count by both together: choose with "divide_by"`,
    );
  }
  if (rule.from !== undefined && rule.to !== undefined && rule.from >= rule.to) {
    add("to", `${rule.to} is not after ${rule.from}. The day "to" is not included`);
  }
  const shares = sharesOf(rule);
  const sum = shares.reduce((all, { share }) => all + share, 0);
  if (payers.length > 0 && sum !== WHOLE_SHARE)
    add("shares", `the shares add up to ${sum / WHOLE_SHARE}, not to 1`);
  const payees = shares.map((one) => JSON.stringify([one.owner, one.costCenter]));
  if (new Set(payees).size < payees.length)
    add("shares", "an owner and cost centre has two shares: add them up");
  return problems;
}

function sharesOf({ owner, owner_from_tag, cost_center, shares }: RawRule): OwnerShare[] {
  if (shares !== undefined) {
    return shares.map((one) => ({
      owner: one.owner,
      costCenter: one.cost_center ?? null,
      share: Math.round(Number(one.share) * WHOLE_SHARE),
    }));
  }
  return owner === undefined && owner_from_tag === undefined
    ? []
    : [{ owner: owner ?? null, costCenter: cost_center ?? null, share: WHOLE_SHARE }];
}

function ruleOf(rule: RawRule, line: number): OwnerRule {
  const {
    source = null,
    workspace = null,
    name = null,
    tag,
    owner_from_tag: tagKey,
    from = null,
    to = null,
  } = rule;
  const dimension = OWNED_DIMENSIONS.find((one) => rule[one] !== undefined);
  const [given] = Object.entries(tag ?? {});
  return {
    line,
    source,
    workspace,
    name,
    from,
    to,
    of: dimension === undefined ? null : { dimension, id: rule[dimension] as string },
    tag:
      given !== undefined
        ? { key: given[0], value: given[1] }
        : tagKey === undefined
          ? null
          : { key: tagKey, value: null },
    shares: sharesOf(rule),
  };
}

function problemsOfBudget(budget: RawBudget, at: number): Problem[] {
  const problems: Problem[] = [];
  const add = (key: string, why: string) => problems.push({ path: ["budgets", at, key], why });
  const [first, second] = (["owner", "workspace", "project"] as const).filter(
    (key) => budget[key] !== undefined,
  );
  if (second !== undefined)
    add(second, `a budget is of one thing, and this one has "${first}" and "${second}"`);
  const { traces, amount, currency } = budget;
  if (budget.per === "billing_period" && budget.source === undefined)
    add("per", `a billing period is that of one source: name it with "source"`);
  if (traces === undefined && amount === undefined)
    add("", `a budget has an amount: give "traces", or "amount" and "currency"`);
  if (traces !== undefined && (amount !== undefined || currency !== undefined)) {
    add(
      amount === undefined ? "currency" : "amount",
      `a budget is in traces or in money: give each one of its own`,
    );
  } else if ((amount === undefined) !== (currency === undefined)) {
    add(amount === undefined ? "currency" : "amount", `give "amount" and "currency" together`);
  }
  return problems;
}

function budgetOf(budget: RawBudget, line: number): Budget {
  const kind = (["owner", "workspace", "project"] as const).find((one) => budget[one] !== undefined);
  return {
    line,
    source: budget.source ?? null,
    per: budget.per,
    of: kind === undefined ? null : { kind, id: budget[kind] as string },
    currency: budget.currency ?? null,
    amount: budget.traces ?? budget.amount ?? "",
    warnAt: [...new Set(budget.warn_at)].sort((a, b) => a - b),
  };
}

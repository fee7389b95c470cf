import { type Changed, hourOf, type LedgerOptions, type LedgerRange } from "./ledger.ts";
import { type Evaluator, type EvaluatorRule, named } from "./organisation.ts";
import { unit } from "./random.ts";
import { DAY } from "./trend.ts";

/** Both paths are documented. */
export const EVALUATOR_SPEND = ["/v1/platform/evaluators/spend", "/api/v1/platform/evaluators/spend"];

type EvaluatorMeasure = "spend_usd" | "trace_count";

/** Billionths of a dollar, so that sums are exact. */
export type EvaluatorAmounts = Record<EvaluatorMeasure, number>;

export interface EvaluatorDay extends EvaluatorAmounts {
  readonly evaluator: Evaluator;
  readonly rule: EvaluatorRule;
  /** Epoch ms. */
  readonly day: number;
}

interface EvaluatorChange {
  readonly ruleId: string;
  readonly at: number;
  readonly measure: EvaluatorMeasure;
  /** Traces, or billionths of a dollar. */
  readonly delta: number;
}

/** The current day shows the part that has passed (our guess). A deleted workspace keeps its spend. */
export class EvaluatorLedger {
  readonly #added = new Map<string, EvaluatorAmounts>();
  readonly #options: LedgerOptions;

  constructor(options: LedgerOptions) {
    this.#options = { ...options, seed: options.seed + 49_979_687 };
  }

  days({ workspaceId, start, end }: LedgerRange): EvaluatorDay[] {
    const now = this.#options.now();
    const rows: EvaluatorDay[] = [];
    const first = Math.ceil(Math.max(start, this.#options.start) / DAY) * DAY;
    for (const evaluator of this.#options.organisation.evaluators) {
      if (workspaceId !== undefined && evaluator.workspace.id !== workspaceId) continue;
      for (const rule of evaluator.rules) {
        for (let day = first; day < Math.min(end, now); day += DAY) {
          const amounts = this.#shown(evaluator, rule, day);
          if (amounts.spend_usd > 0 || amounts.trace_count > 0)
            rows.push({ evaluator, rule, day, ...amounts });
        }
      }
    }
    return rows;
  }

  /**
   * Changes one row, never below 0. A future row shows on its day. An evaluator by code costs 0. Throws for a row before the
   * start or an unknown rule.
   */
  change({ ruleId, at, measure, delta }: EvaluatorChange): Changed {
    const day = Math.floor(hourOf(this.#options.start, at, delta) / DAY) * DAY;
    const { evaluators } = this.#options.organisation;
    const rule = named(
      "evaluator rule",
      ruleId,
      evaluators.flatMap(({ rules }) => rules),
    );
    const evaluator = evaluators.find(({ rules }) => rules.includes(rule)) as Evaluator;
    const before = this.#shown(evaluator, rule, day)[measure];
    const added = { ...(this.#added.get(rowId(rule, day)) ?? NONE) };
    const least = -seeded(this.#options.seed, evaluator, rule, day)[measure];
    const isAlwaysZero = measure === "spend_usd" && evaluator.type === "code";
    if (!isAlwaysZero) added[measure] = Math.max(least, added[measure] + delta);
    this.#added.set(rowId(rule, day), added);
    return { before, after: this.#shown(evaluator, rule, day)[measure] };
  }

  #shown(evaluator: Evaluator, rule: EvaluatorRule, day: number): Readonly<EvaluatorAmounts> {
    const until = Math.min(this.#options.now(), evaluator.workspace.deletedAt ?? Number.POSITIVE_INFINITY);
    if (rule.project?.dropped || day >= until) return NONE;
    const whole = seeded(this.#options.seed, evaluator, rule, day);
    const added = this.#added.get(rowId(rule, day)) ?? NONE;
    const passed = Math.min(1, (until - day) / DAY);
    return {
      spend_usd: Math.max(0, Math.floor(whole.spend_usd * passed) + added.spend_usd),
      trace_count: Math.max(0, Math.floor(whole.trace_count * passed) + added.trace_count),
    };
  }
}

const NONE: Readonly<EvaluatorAmounts> = { spend_usd: 0, trace_count: 0 };

/** The amounts depend only on seed, rule and day (our own). On one day in five there is no amount. */
function seeded(
  seed: number,
  { type }: Evaluator,
  { id }: EvaluatorRule,
  day: number,
): Readonly<EvaluatorAmounts> {
  const own = Number.parseInt(id.slice(0, 8), 16);
  const nth = day / DAY;
  if (unit(seed, own, nth) < 0.2) return NONE;
  const usual = 5 * 60 ** unit(seed + 1, own, 0);
  const traces = Math.ceil(usual * (0.5 + unit(seed + 2, own, nth)));
  // 0.0001 to 0.005 USD a trace. The spend is odd in the ninth decimal, so rounding gives a wrong sum.
  const each = 100_000 + 4_900_000 * unit(seed + 3, own, 0) * (0.5 + unit(seed + 4, own, nth) / 2);
  const spend = 2 * Math.floor((traces * each) / 2) + 1;
  return { spend_usd: type === "code" ? 0 : spend, trace_count: traces };
}

function rowId({ id }: EvaluatorRule, day: number): string {
  return `${id} ${day}`;
}

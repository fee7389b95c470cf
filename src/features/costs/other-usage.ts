import { METER_NAME, type Meter } from "../../core/domain/usage/meter.ts";

/**
 * How a close treats a meter. `checked`: its days must be loaded, final and without a difference. `not_counted`: wanted, but
 * the server does not count it. `not_known`: wanted, but it is not known whether the server counts it, so the month stays open.
 * `not_wanted`: loaded earlier; only a difference keeps the month open.
 */
type OtherState = "checked" | "not_counted" | "not_known" | "not_wanted";

export interface KnownUsage {
  readonly meter: Meter;
  readonly state: OtherState;
  /** The server's response if it does not count the meter, or null. */
  readonly evidence: string | null;
  readonly finalDays: number;
  readonly reconciledDays: number;
  readonly differences: number;
}

const CLOSE: Readonly<Record<OtherState, string>> = {
  checked: "checked too",
  not_counted: "not in the close, since the server is not known to count it",
  not_known: "keeps the close open, since it is not known whether the server counts it",
  not_wanted: "not checked for gaps, since it is no longer kept (USAGE_METERS)",
};

export function closeDoes({ state }: KnownUsage): string {
  return CLOSE[state];
}

export function withFigures(known: readonly KnownUsage[]): KnownUsage[] {
  return known.filter(
    (one) => one.state === "checked" || one.finalDays + one.reconciledDays + one.differences > 0,
  );
}

export function describeAbsent(known: readonly KnownUsage[]): string[] {
  const present = new Set(withFigures(known));
  const absent = known.filter((one) => !present.has(one));
  const sentences = [...Map.groupBy(absent, ({ state }) => state)].map(
    ([state, some]) => `${sentence(some.map(({ meter }) => METER_NAME[meter]).join(", "))}: ${CLOSE[state]}.`,
  );
  const isRefused = absent.some(({ evidence }) => evidence !== null);
  return isRefused ? [...sentences, "`usage-etl doctor` shows what the server responded."] : sentences;
}

export function describeOtherUsage(known: readonly KnownUsage[]): string {
  const present = withFigures(known).map((one) => {
    const { meter, finalDays, reconciledDays, differences } = one;
    const left = differences === 0 ? "no difference" : `${count(differences)} DIFFERENT`;
    return `${sentence(METER_NAME[meter])}: ${closeDoes(one)}; daily figures: ${count(finalDays)} final, ${count(reconciledDays)} reconciled; ${left}.`;
  });
  return [...present, ...describeAbsent(known)].join(" ");
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

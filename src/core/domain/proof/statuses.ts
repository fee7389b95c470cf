/** The only words and marks for the status of a figure, a month, a load and a budget: of pages, files, commands and alerts. */

export type Tone = "ok" | "info" | "warn" | "bad" | "none";

export interface Status {
  readonly mark: string;
  readonly word: string;
  readonly tone: Tone;
  readonly about: string;
}

export const FIGURE_STATUS = {
  proved: {
    mark: "●",
    word: "Proved",
    tone: "ok",
    about: "Final, and equal to the platform's export or totals",
  },
  final: {
    mark: "◇",
    word: "Final",
    tone: "none",
    about: "Changes only by a restatement, and is not compared with the platform's export or totals yet",
  },
  provisional: { mark: "◐", word: "Provisional", tone: "info", about: "Loaded, and may still change" },
  missing: { mark: "○", word: "Missing", tone: "warn", about: "Not loaded, failed, or without a price" },
  differs: { mark: "≠", word: "Differs", tone: "bad", about: "The platform reports another number" },
} as const satisfies Readonly<Record<string, Status>>;
export type FigureStatus = keyof typeof FIGURE_STATUS;

export const MONTH_STATUS = {
  in_progress: { mark: "◐", word: "In progress", tone: "info", about: "The month has not ended" },
  open: { mark: "□", word: "Open", tone: "warn", about: "Something keeps the month open" },
  ready: { mark: "✓", word: "Ready to close", tone: "ok", about: "Nothing keeps the month open" },
  closed: { mark: "■", word: "Closed", tone: "ok", about: "Its totals are kept for good" },
} as const satisfies Readonly<Record<string, Status>>;
export type MonthStatus = keyof typeof MONTH_STATUS;

/** @public */
export const LOAD_STATUS = {
  running: { mark: "◐", word: "Running", tone: "info", about: "Its requests are sent or wait" },
  paused: { mark: "‖", word: "Paused", tone: "none", about: "Its requests wait until it is resumed" },
  done: { mark: "✓", word: "Done", tone: "ok", about: "Every request has ended well" },
  failed: { mark: "✕", word: "Failed", tone: "bad", about: "It has ended, and a request failed" },
} as const satisfies Readonly<Record<string, Status>>;
/** @public */
export type LoadStatus = keyof typeof LOAD_STATUS;

export const BUDGET_STATUS = {
  on_track: { mark: "✓", word: "On track", tone: "ok", about: "The forecast is within the budget" },
  at_risk: { mark: "!", word: "At risk", tone: "warn", about: "The forecast is more than the budget" },
  exceeded: { mark: "✕", word: "Exceeded", tone: "bad", about: "The budget is used up" },
  within: { mark: "✓", word: "Within", tone: "ok", about: "The period ended within the budget" },
} as const satisfies Readonly<Record<string, Status>>;
/** @public */
export type BudgetStatus = keyof typeof BUDGET_STATUS;

/** The status of a sum: the worst of its parts. `isComplete`: all of it is loaded and has a price. */
export function figureStatus(figure: {
  readonly isComplete: boolean;
  readonly isFinal: boolean;
  readonly isProved: boolean;
  readonly isDifferent?: boolean;
}): FigureStatus {
  if (figure.isDifferent === true) return "differs";
  if (!figure.isComplete) return "missing";
  if (!figure.isFinal) return "provisional";
  return figure.isProved ? "proved" : "final";
}

/** `open`: number of things that keep a month open that has ended. */
export function monthStatus(month: {
  readonly isClosed: boolean;
  readonly isUnderWay: boolean;
  readonly open: number;
}): MonthStatus {
  if (month.isClosed) return "closed";
  if (month.isUnderWay) return "in_progress";
  return month.open > 0 ? "open" : "ready";
}

import type { LeftOutReason } from "../../domain/planning/planned-windows.ts";

/** Why a part is left out, behind its range. */
export const LEFT_OUT: Readonly<Record<LeftOutReason, string>> = {
  before_data_start: "before the data start, so nothing is asked for",
  future: "in the future, so nothing is asked for",
  final: "final already, so not fetched again",
  not_available: "not available in that stride, so the requests are dropped",
};

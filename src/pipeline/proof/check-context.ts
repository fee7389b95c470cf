import type { UsageRequest } from "../../domain/planning/request.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import type { Finding } from "../../store/proof/control-findings.ts";
import type { OpenSource } from "../source/source.ts";

/** What both halves of a check work with. */
export interface CheckContext {
  readonly source: OpenSource;
  /** What is counted. */
  readonly meter: Meter;
  /** Day scopes of the source's workspaces, as they were when the check began. */
  readonly states: readonly ScopeState[];
  readonly final: Interval;
  readonly range: Interval;
  /** Findings of earlier checks. They are not asked about again while their numbers are the same. */
  readonly known: readonly Finding[];
}

export interface TotalsFailure {
  readonly request: UsageRequest;
  readonly code: string;
  readonly message: string;
}

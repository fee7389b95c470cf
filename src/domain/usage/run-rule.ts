/** A rule that runs an evaluator on the traces of a project, or on a dataset. Ids are `NO_ID` where there is none. */
export interface RunRule {
  readonly runRuleId: string;
  readonly name: string | null;
  readonly evaluatorId: string;
  readonly evaluatorName: string | null;
  readonly projectId: string;
  readonly projectName: string | null;
  readonly datasetId: string;
  readonly datasetName: string | null;
  /** What it may spend a week, in billionths of a US dollar; null: no limit is told. */
  readonly weeklyLimit: number | null;
}

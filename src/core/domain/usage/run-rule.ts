export interface RunRule {
  readonly runRuleId: string;
  readonly name: string | null;
  readonly evaluatorId: string;
  readonly evaluatorName: string | null;
  readonly projectId: string;
  readonly projectName: string | null;
  readonly datasetId: string;
  readonly datasetName: string | null;
  /** Weekly limit in billionths of a US dollar. Null: the platform names none. */
  readonly weeklyLimit: number | null;
}

export interface ResourceTag {
  readonly dimension: "project" | "deployment" | "sandbox";
  readonly resourceId: string;
  readonly key: string;
  readonly value: string;
}

export interface WorkspaceTags {
  readonly tags: readonly ResourceTag[];
  /** Entries that are no tag of a resource, with their place: `2.resources.projects.0.resource_id is nothing`. */
  readonly refused: readonly string[];
}

/** A value of a tag that a resource has, by the platform's id. A resource may have several of one key. */
export interface ResourceTag {
  readonly dimension: "project" | "deployment" | "sandbox";
  readonly resourceId: string;
  readonly key: string;
  readonly value: string;
}

/** The tags of all resources of a workspace. */
export interface WorkspaceTags {
  readonly tags: readonly ResourceTag[];
  /** What is no tag of a resource, with its place: `2.resources.projects.0.resource_id is nothing`. The others are right. */
  readonly refused: readonly string[];
}

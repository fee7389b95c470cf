import type { GroupBy } from "../../domain/usage/record.ts";

interface Dimension {
  /** Field of `dimensions` in JSON, and column of the CSV export, that hold the id (platform-api.md, Resources). */
  readonly idKey: string;
  readonly idColumn: string;
  /** The same for the name; keys have none. */
  readonly nameKey?: string;
  readonly nameColumn?: string;
}

export const DIMENSION: Readonly<Record<GroupBy, Dimension>> = {
  workspace: {
    idKey: "workspace_id",
    idColumn: "Workspace ID",
    nameKey: "workspace_name",
    nameColumn: "Workspace Name",
  },
  project: {
    idKey: "project_id",
    idColumn: "Project ID",
    nameKey: "project_name",
    nameColumn: "Project Name",
  },
  user: { idKey: "user_id", idColumn: "User ID", nameKey: "user_email", nameColumn: "User Email" },
  api_key: { idKey: "api_key_short_key", idColumn: "API Key Short Key" },
};

/**
 * Notices an answer of another grouping than was asked for: not one record has the asked dimension, and some have
 * another one. Taken as it is, it would put every trace under `(none)`. Records that have no dimension at all say
 * nothing either way.
 */
export class GroupingWitness {
  #own = false;
  #foreign: string | undefined;

  sawOwn(): void {
    this.#own = true;
  }

  /** `dimension`: the field or column of another grouping that is filled where the asked one is not there. */
  sawForeign(dimension: string): void {
    this.#foreign ??= dimension;
  }

  /** The other grouping's field or column, once every record was seen; undefined where the grouping is right. */
  verdict(): string | undefined {
    return this.#own ? undefined : this.#foreign;
  }
}

import type { GroupBy } from "../../domain/usage/record.ts";

interface Dimension {
  /** Field of `dimensions` in JSON, and column of the CSV export, with the id (Records in docs/platform.md). */
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
 * Detects an answer by another dimension than was requested: no record has the requested one, and some have another. Loading it
 * would put every trace under `(none)`. Records without any dimension prove nothing.
 */
export class GroupingWitness {
  #own = false;
  #foreign: string | undefined;

  sawOwn(): void {
    this.#own = true;
  }

  /** `dimension`: the field or column of another dimension that is filled where the requested one is absent. */
  sawForeign(dimension: string): void {
    this.#foreign ??= dimension;
  }

  /** Call it after the last record. The other dimension's field or column; undefined if the answer is right. */
  verdict(): string | undefined {
    return this.#own ? undefined : this.#foreign;
  }
}

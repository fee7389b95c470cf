import { sql } from "kysely";
import { printableLine } from "../../printable.ts";
import type { Database } from "../db/database.ts";

/** Who gives an order. A viewer gives none, but what was refused to one is recorded too. */
export interface Actor {
  /** Null where nobody says: a shared token without a name, a system without a user's name. */
  readonly name: string | null;
  readonly role: "operator" | "viewer";
  readonly via: "page" | "command";
}

/** `refused`: a rule refused it, and nothing was changed. `failed`: it ended with an error. */
type ActionOutcome = "done" | "refused" | "failed";

export interface NewAction {
  /** Null for what concerns no source, or several. */
  readonly sourceId: number | null;
  /** Such as `backfill.start`. */
  readonly action: string;
  /** What exactly, in one line. It is cut at 1,000 characters. */
  readonly detail: string;
  /** Default: `done`. */
  readonly outcome?: ActionOutcome;
}

const MOST_CHARACTERS = 1000;

/**
 * Records who did what. Give it the transaction of what it records, where that is one: then neither stands without the other.
 * Returns the number of the action.
 */
export async function recordAction(db: Database, by: Actor, action: NewAction): Promise<number> {
  const { sourceId, action: name, outcome = "done", detail } = action;
  const actor = by.name === null ? null : oneLine(by.name);
  const { rows } = await sql<{ id: number }>`
    insert into usage.operator_action (source_id, action, outcome, role, via, actor, detail)
    values (${sourceId}, ${name}, ${outcome}, ${by.role}, ${by.via}, ${actor}, ${oneLine(detail)})
    returning action_id as id
  `.execute(db);
  return rows[0]?.id as number;
}

/** Postgres counts characters, JavaScript halves of those outside of the first plane. NUL is no text of Postgres. */
function oneLine(text: string): string {
  const characters = [...printableLine(text)];
  if (characters.length <= MOST_CHARACTERS) return characters.join("");
  return `${characters.slice(0, MOST_CHARACTERS - 1).join("")}…`;
}

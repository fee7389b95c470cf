import { printableLine } from "../../printable.ts";
import { type Database, queryValues } from "../db/query.ts";

export interface Actor {
  /** Null: a shared token without a name, or a system without a user's name. */
  readonly name: string | null;
  readonly role: "operator" | "viewer";
  readonly via: "page" | "command";
}

/** Name for readers who may see no e-mail addresses: the name that a proxy gives may be one. */
export function maskedActor(name: string): string {
  return name.includes("@") ? "an operator" : name;
}

/** `refused`: a rule refused it, and nothing was changed. */
type ActionOutcome = "done" | "refused" | "failed";

export interface NewAction {
  /** Null for actions on no source, or several. */
  readonly sourceId: number | null;
  readonly action: string;
  readonly detail: string;
  readonly outcome?: ActionOutcome;
}

const MOST_CHARACTERS = 1000;

/** Call it within the transaction of the change, so that both commit together. Returns the number of the action. */
export async function recordAction(db: Database, by: Actor, action: NewAction): Promise<number> {
  const { sourceId, action: name, outcome = "done", detail } = action;
  const actor = by.name === null ? null : oneLine(by.name);
  const [id] = await queryValues<number>(db)`
    insert into usage.operator_action (source_id, action, outcome, role, via, actor, detail)
    values (${sourceId}, ${name}, ${outcome}, ${by.role}, ${by.via}, ${actor}, ${oneLine(detail)})
    returning action_id as id
  `;
  return id as number;
}

/** Postgres counts characters, JavaScript UTF-16 units. Postgres texts have no NUL. */
function oneLine(text: string): string {
  const characters = [...printableLine(text)];
  if (characters.length <= MOST_CHARACTERS) return characters.join("");
  return `${characters.slice(0, MOST_CHARACTERS - 1).join("")}…`;
}

import { printableLine } from "../../base/printable.ts";
import type { Database, Row } from "../db/query.ts";

export interface Actor extends Row<"usage.operator_action", "role" | "via"> {
  /** Null: a shared token without a name, or a system without a user's name. */
  readonly name: string | null;
}

/** Hides the name from readers who may see no e-mail addresses: a proxy may give an address as the name. */
export function maskedActor(name: string): string {
  return name.includes("@") ? "an operator" : name;
}

type ActionOutcome = Row<"usage.operator_action">["outcome"];

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
  const { role, via } = by;
  const actor = by.name === null ? null : oneLine(by.name);
  const { action_id } = await db
    .insertInto("usage.operator_action")
    .values({ source_id: sourceId, action: name, outcome, role, via, actor, detail: oneLine(detail) })
    .returning("action_id")
    .executeTakeFirstOrThrow();
  return action_id;
}

/** Postgres counts characters, JavaScript counts UTF-16 units. Postgres refuses NUL in texts. */
function oneLine(text: string): string {
  const characters = [...printableLine(text)];
  if (characters.length <= MOST_CHARACTERS) return characters.join("");
  return `${characters.slice(0, MOST_CHARACTERS - 1).join("")}…`;
}

import { nearest } from "../../config/spelling.ts";
import { UsageError } from "../../errors.ts";
import type { NamedWorkspace } from "../../store/activity/reader-login.ts";

const MOST_LISTED = 20;

/**
 * The workspace with this id or name. Upper and lower case differ only where two names would be the same without. Errors:
 * `workspace_unknown`, `workspace_ambiguous`.
 */
export function workspaceNamed<W extends NamedWorkspace>(known: readonly W[], asked: string): W {
  const folded = asked.toLowerCase();
  const byId = known.find(({ id }) => id === asked || id === folded);
  if (byId !== undefined) return byId;
  const exact = known.filter(({ name }) => name === asked);
  const named = exact.length > 0 ? exact : known.filter(({ name }) => name?.toLowerCase() === folded);
  const ids = [...new Set(named.map(({ id }) => id))];
  if (ids.length > 1) {
    throw new UsageError({
      code: "workspace_ambiguous",
      message: `${ids.length} workspaces are named ${JSON.stringify(asked)}.`,
      next: `Name one by its id: ${ids.join(", ")}.`,
    });
  }
  if (named[0] !== undefined) return named[0];
  const listed = known.map(({ id, name }) => name ?? id);
  const next = "`usage-etl export --view dim_workspace` lists them.";
  throw unknownName({
    code: "workspace_unknown",
    what: "known workspace",
    name: asked,
    known: [...listed, ...known.map(({ id }) => id)],
    next: listed.length > MOST_LISTED ? next : choice(listed),
  });
}

/** Returns an error that names the known name of similar spelling. */
export function unknownName(given: {
  code: string;
  what: string;
  name: string;
  known: readonly string[];
  next?: string;
}): UsageError {
  const { code, what, name, known, next = choice(known) } = given;
  const near = nearest(name, known);
  return new UsageError({
    code,
    message: `${JSON.stringify(name)} is not a ${what}.${near === undefined ? "" : ` Did you mean ${near}?`}`,
    next,
  });
}

function choice(known: readonly string[]): string {
  return `Choose one of: ${known.join(", ")}.`;
}

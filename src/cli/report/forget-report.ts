import type { Forgotten } from "../../store/catalog/forget.ts";

const PARTS = [
  ["records", "records"],
  ["restatements", "restatements"],
  ["loadedIntervals", "loaded intervals"],
  ["failures", "kept failures"],
  ["differences", "differences"],
  ["fetchTasks", "fetch tasks"],
  ["prices", "prices"],
] as const;

/** What a workspace or a source held, and whether it is gone: `Workspace ... of source default is forgotten. ...`. */
export function describeForgotten(what: string, { forgotten, held }: Forgotten, again: string): string {
  const parts = PARTS.filter(([key]) => held[key] > 0).map(
    ([key, name]) => `${held[key].toLocaleString("en-US")} ${name}`,
  );
  const leftOut =
    held.leftOutMonths.length === 0 ? [] : [`its mention as left out of ${held.leftOutMonths.join(", ")}`];
  const all = [...parts, ...leftOut];
  if (forgotten) {
    return `${what} is forgotten${all.length === 0 ? ". Nothing else depended on it." : `, with ${all.join(", ")}.`}`;
  }
  const go = all.length === 0 ? "Nothing else would go with it." : `With it would go: ${all.join(", ")}.`;
  return `${what} was not forgotten, since --dry-run was given. ${go}\nTo forget it, run \`usage-etl ${again}\`.`;
}

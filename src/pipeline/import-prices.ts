import { nearest } from "../config/spelling.ts";
import { describePrice, overlaps, type Price, scopeOf, textOf } from "../domain/price.ts";
import { UsageError } from "../errors.ts";
import type { Database, Store } from "../store/db/database.ts";
import { addPrices, knownWorkspaces, listPrices, lockPrices, removePrices } from "../store/report/prices.ts";

/** A price, and where in its file it stands: `line 3`. */
export interface PriceLine {
  readonly where: string;
  readonly price: Price;
}

interface ImportResult {
  readonly added: number;
  readonly unchanged: number;
  readonly removed: number;
  /** All that are stored now. */
  readonly stored: readonly Price[];
}

/** Problems shown; a file whose columns are shifted has one a line. */
const SHOWN = 10;

/**
 * Enters the prices of a file, all of them or none. What is stored already stays as it is, number included; with
 * `replace` the file is the whole price list, and what it lacks is removed. Errors: `price_file_invalid`, naming every
 * line whose source or workspace is unknown or which overlaps another price.
 */
export async function importPrices(
  store: Store,
  { file, lines, replace }: { file: string; lines: readonly PriceLine[]; replace: boolean },
): Promise<ImportResult> {
  return store.transaction(async ({ db }) => {
    await lockPrices(db);
    const { resolved, problems } = await resolveWorkspaces(db, lines);
    const stored = await listPrices(db);
    const wanted = new Set(resolved.map(({ price }) => textOf(price)));
    const kept = replace ? stored.filter((price) => wanted.has(textOf(price))) : stored;
    const there = new Set(kept.map(textOf));
    const added = resolved.filter(({ price }) => !there.has(textOf(price)));
    problems.push(...overlapsWithin(resolved), ...overlapsWith(kept, added));
    refuse(file, problems);
    await removePrices(
      db,
      stored.filter((price) => !kept.includes(price)).map(({ priceId }) => priceId),
    );
    await addPrices(
      db,
      added.map(({ price }) => price),
    );
    return {
      added: added.length,
      unchanged: resolved.length - added.length,
      removed: stored.length - kept.length,
      stored: [...kept, ...added.map(({ price }) => price)],
    };
  });
}

/** Throws `price_file_invalid` where there are problems: one message, with the first ten of them. */
export function refuse(file: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const more = problems.length > SHOWN ? [`and ${problems.length - SHOWN} more`] : [];
  throw new UsageError({
    code: "price_file_invalid",
    message: [`${file} was not imported:`, ...problems.slice(0, SHOWN), ...more].join("\n  "),
    next: "Mend the file and import it again: nothing of it was stored.",
  });
}

/** Workspaces given without their source get it; unknown ones are problems. */
async function resolveWorkspaces(
  db: Database,
  lines: readonly PriceLine[],
): Promise<{ resolved: PriceLine[]; problems: string[] }> {
  const known = await knownWorkspaces(db);
  const problems: string[] = [];
  const resolved = lines.flatMap(({ where, price }) => {
    const { source, workspace } = price;
    const among = known.filter((one) => source === null || one.source === source);
    if (among.length === 0 && source !== null) {
      problems.push(
        `${where}, column "source": ${unknown("source", source, { known: known.map((one) => one.source) })}`,
      );
      return [];
    }
    if (workspace === null) return [{ where, price }];
    const owners = among.filter(({ workspaces }) => workspaces.includes(workspace));
    if (owners.length === 1) return [{ where, price: { ...price, source: owners[0]?.source ?? null } }];
    const why =
      owners.length === 0
        ? unknown("workspace", workspace, { known: among.flatMap(({ workspaces }) => workspaces) })
        : `${workspace} is a workspace of ${owners.map((one) => one.source).join(" and ")}: give the source too`;
    problems.push(`${where}, column "workspace": ${why}`);
    return [];
  });
  return { resolved, problems };
}

function unknown(what: string, value: string, { known }: { known: readonly string[] }): string {
  const near = nearest(value, known);
  const hint =
    near === undefined ? `known are ${known.slice(0, 5).join(", ") || "none"}` : `did you mean ${near}?`;
  return `${JSON.stringify(value)} is no known ${what}; ${hint}`;
}

function overlapsWithin(lines: readonly PriceLine[]): string[] {
  const problems: string[] = [];
  const seen = new Map<string, PriceLine[]>();
  for (const line of lines) {
    const before = seen.get(scopeOf(line.price)) ?? [];
    const other = before.find(({ price }) => overlaps(price, line.price));
    if (other !== undefined) problems.push(overlapOf(line, other.where, other.price));
    seen.set(scopeOf(line.price), [...before, line]);
  }
  return problems;
}

function overlapsWith(kept: readonly Price[], lines: readonly PriceLine[]): string[] {
  const byScope = Map.groupBy(kept, scopeOf);
  return lines.flatMap((line) => {
    const other = byScope.get(scopeOf(line.price))?.find((price) => overlaps(price, line.price));
    if (other === undefined) return [];
    const remedy = "Let one end where the other begins, or give --replace to make the file the whole list";
    return [`${overlapOf(line, "a stored price", other)}. ${remedy}`];
  });
}

function overlapOf(line: PriceLine, where: string, other: Price): string {
  return `${line.where}, column "valid_from": ${line.price.validFrom} to ${line.price.validTo ?? "further notice"} overlaps ${where} (${describePrice(other)})`;
}

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MOVED } from "./moved.ts";

const TRAFFIC = /\.(requests|unasked|planned) = |\.rows\.\w+ = /;
const UNSTEADY = /^paths$|^:timeline/;
/** The year of a date, which a page may name more or less often. */
const YEAR = /^text 20\d\d$/;

const MOST_SHOWN = 8;

export function compareFolders(old: string, own: string): string[] {
  return ["histories", "demo"].flatMap((database) => {
    const after = filesIn(join(own, database));
    return filesIn(join(old, database))
      .sort()
      .flatMap((name) => {
        if (isExpected(name) || UNSTEADY.test(name)) return [];
        const where = `${database}: ${name}`;
        if (!after.includes(name)) return [`${where} is gone.`];
        const lines = [old, own].map((folder) => linesOf(join(folder, database, name), name)) as [
          string[],
          string[],
        ];
        return compareLines(
          where,
          ...lines,
          MOVED.shorter.some((one) => one.test(name)),
        );
      });
  });
}

const filesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);

function isExpected(name: string): boolean {
  return (
    MOVED.views.some((one) => one.test(name.replace(/\.view$/, ""))) ||
    MOVED.files.some((one) => one.test(name))
  );
}

function linesOf(file: string, name: string): string[] {
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  if (name.endsWith(".view")) return lines.map((line) => withoutMoved(name.replace(/\.view$/, ""), line));
  const ignored = [TRAFFIC, YEAR, ...MOVED.lines];
  return lines.filter((line) => !ignored.some((one) => one.test(line)));
}

function withoutMoved(view: string, line: string): string {
  const gone = MOVED.columns.map((one) => one.split(".")).filter(([of]) => of === "*" || of === view);
  if (gone.length === 0) return line;
  const row = JSON.parse(line) as Record<string, unknown>;
  for (const [, column = ""] of gone) delete row[column];
  return JSON.stringify(row);
}

function compareLines(
  where: string,
  before: readonly string[],
  after: readonly string[],
  mayBeShorter: boolean,
): string[] {
  const left = new Map<string, number>();
  for (const line of before) left.set(line, (left.get(line) ?? 0) + 1);
  const added: string[] = [];
  for (const line of after) {
    const count = left.get(line) ?? 0;
    if (count === 0) added.push(line);
    else left.set(line, count - 1);
  }
  const removed = [...left].flatMap(([line, count]) => Array<string>(count).fill(line));
  if (added.length === 0 && (mayBeShorter || removed.length === 0)) return [];
  const shown = where.endsWith(".view")
    ? otherRows(removed, added)
    : [...listed("-", removed), ...listed("+", added)];
  return [[`${where}: ${removed.length} lines only before, ${added.length} only now`, ...shown].join("\n")];
}

const listed = (sign: string, lines: readonly string[]) => [
  ...lines.slice(0, MOST_SHOWN).map((line) => `  ${sign} ${line}`),
  ...(lines.length > MOST_SHOWN ? [`  ${sign} and ${lines.length - MOST_SHOWN} more`] : []),
];

function otherRows(removed: readonly string[], added: readonly string[]): string[] {
  const left = added.slice(0, 500).map((line) => JSON.parse(line) as Record<string, unknown>);
  const shown: string[] = [];
  for (const line of removed.slice(0, MOST_SHOWN)) {
    const row = JSON.parse(line) as Record<string, unknown>;
    const shared = (other: Record<string, unknown>) =>
      Object.keys(row).filter((key) => row[key] === other[key]).length;
    const [best] = [...left].sort((a, b) => shared(b) - shared(a));
    if (best === undefined || shared(best) * 2 < Object.keys(row).length) {
      shown.push(`  - ${line}`);
      continue;
    }
    left.splice(left.indexOf(best), 1);
    const keys = [...new Set([...Object.keys(row), ...Object.keys(best)])];
    const same = keys.filter(
      (key) => row[key] === best[key] && /_id$|date|month|owner|group|sku|stride/.test(key),
    );
    const name = same.map((key) => `${key}=${row[key]}`).join(" ");
    const changed = keys
      .filter((key) => row[key] !== best[key])
      .map((key) => `${key}: ${row[key]} -> ${best[key]}`);
    shown.push(`  ${name}: ${changed.join(", ")}`);
  }
  if (removed.length > MOST_SHOWN) shown.push(`  and ${removed.length - MOST_SHOWN} more rows`);
  const news =
    removed.length < added.length ? left.slice(0, MOST_SHOWN).map((row) => `  + ${JSON.stringify(row)}`) : [];
  return [...shown, ...news];
}

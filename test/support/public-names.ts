import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SETTINGS } from "../../src/core/base/settings.ts";
import { EXIT } from "../../src/terminal/exit.ts";
import { createMetrics } from "../../src/web/metrics.ts";
import { errorCodes } from "./error-codes.ts";
import { helpOfAll, optionsOf } from "./help.ts";

/** The public names of docs/upgrading/README.md but the keys of `--json`: lines of a kind and a name, such as `command sync`. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const LIST = join(ROOT, "docs/upgrading/names.txt");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const firsts = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, first = ""]) => first);

export async function publicNames(): Promise<string[]> {
  const help = await helpOfAll();
  const names = {
    setting: Object.keys(SETTINGS),
    command: help.map(({ path }) => path.join(" ")).filter((name) => name !== ""),
    option: help.flatMap(({ path, said }) => optionsOf(said).map((name) => [...path, name].join(" "))),
    exit: Object.values(EXIT).map(String),
    error: [...errorCodes().keys()],
    metric: await metrics(),
    view: firsts(read("sql/schema.sql"), /^-- VIEW (reporting\w*\.\w+)/gm),
    function: firsts(read("sql/schema.sql"), /^-- FUNCTION (reporting\w*\.\w+)/gm),
    columns: [...columnsByView()].map(([view, columns]) => describeColumns(view, columns)),
  };
  const lines = Object.entries(names).flatMap(([kind, all]) => all.map((name) => `${kind} ${name}`));
  return [...new Set(lines)].sort();
}

/** The names of a list that the product does not have any more. Columns may be appended. */
export function missingNames(list: readonly string[], now: readonly string[]): string[] {
  const present = new Set(now);
  const columns = columnsByView();
  return list.filter((line) => {
    const [, view = "", count] = line.match(/^columns (\w+) (\d+) /) ?? [];
    return count === undefined
      ? !present.has(line)
      : line !== `columns ${describeColumns(view, (columns.get(view) ?? []).slice(0, Number(count)))}`;
  });
}

export function unsaidNames(missing: readonly string[], named: readonly string[]): string[] {
  const isSaid = (line: string) => {
    const [kind = "", first = "", ...more] = line.split(" ");
    if (kind === "columns") return named.some((one) => one === first || one.startsWith(`${first}.`));
    const name = [first, ...more].join(" ");
    const commands = named.filter((one) => missing.includes(`command ${one}`));
    return named.includes(name) || commands.some((one) => name.startsWith(`${one} `));
  };
  return missing.filter((line) => !isSaid(line));
}

export function newestSection(changelog = read("CHANGELOG.md")) {
  const [, newest = "", ...older] = changelog.split(/^(?=## \[)/m);
  const parts = newest.split(/^(?=### )/m).filter((part) => /^### (?:Upgrade|Removed)$/m.test(part));
  const named = parts.flatMap((part) => firsts(part, /`(?:usage-etl )?([^`]+)`/g));
  return { isReleased: /^## .* - \d{4}-\d\d-\d\d$/m.test(newest), isFirst: older.length === 0, named };
}

async function metrics(): Promise<string[]> {
  const none = async () => [];
  const text = await createMetrics(undefined as never, none, none).text();
  return firsts(text, /^# TYPE (usage_etl_(?!process_|nodejs_)\w+)/gm);
}

function columnsByView(): Map<string, string[]> {
  const views = read("sql/schema.sql").matchAll(/^-- VIEW reporting\w*\.(\w+) \(\n((?:-- {3}.*\n)+)/gm);
  return new Map(
    [...views].map(([, view = "", columns = ""]) => [
      view,
      firsts(columns, /^-- {3}(.*?),?$/gm).map((column) => `${view}.${column.replaceAll('"', "")}`),
    ]),
  );
}

/** A view, how many columns it has, and a digest of their names and types, so that the list does not repeat them. */
function describeColumns(view: string, columns: readonly string[]): string {
  const digest = createHash("sha256").update(columns.join("\n")).digest("hex").slice(0, 12);
  return `${view} ${columns.length} ${digest}`;
}

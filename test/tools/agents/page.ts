import { readFileSync, writeFileSync } from "node:fs";
import { RULES, RULES_OFF } from "./rules.ts";
import { VERSIONS, type Version } from "./servers.ts";

/** measured.md: what each version responds to each rule, and where the stand-in responds something else. */

const PAGE = new URL("./measured.md", import.meta.url);
const ROW = /^\| (.+?) \| (.+?) \| (.*?) \|(?: ([SM]) \|)?$/;

export type Responses = ReadonlyMap<string, string>;

const inCode = (text: string) => (text === "" ? "nothing" : `\`${text}\``);
const fromCode = (cell: string) => (cell === "nothing" ? "" : cell.replace(/^`(.*)`$/, "$1"));

function rowsBetween(begin: string, end: string): string[][] {
  const text = readFileSync(PAGE, "utf8");
  const part = text.slice(text.indexOf(begin), end === "" ? undefined : text.indexOf(end));
  return part.split("\n").flatMap((line) => {
    const [, ...cells] = ROW.exec(line) ?? [];
    return cells.length === 0 || /^(rule|---)/.test(cells[0] ?? "") ? [] : [cells.map((cell) => cell ?? "")];
  });
}

export function measured(version: Version): Map<string, string> {
  return new Map(
    rowsBetween("## Rules", "## Differences").map(([what, first = "", second = "", mark]) => {
      const cell = version === VERSIONS[0] || second === "" ? first : second;
      return [`${mark} ${what}`, fromCode(cell)];
    }),
  );
}

export function differences(mode: string): Map<string, string> {
  return new Map(
    rowsBetween("## Differences", "## Left out")
      .filter(([what]) => what?.startsWith(`${mode}: `))
      .map(([what = "", responds = ""]) => [what.slice(mode.length + 2), fromCode(responds)]),
  );
}

export function writePage(responses: Readonly<Record<Version, Responses>>): void {
  const text = readFileSync(PAGE, "utf8");
  const tables = Object.entries({ ...RULES, ...RULES_OFF }).map(([heading, rules]) => {
    const rows = Object.keys(rules).map((name) => {
      const [first = "", second = ""] = VERSIONS.map((version) => inCode(responses[version].get(name) ?? ""));
      return `| ${name.slice(2)} | ${first} | ${first === second ? "" : second} | ${name[0]} |`;
    });
    return `### ${heading}\n\n| rule | ${VERSIONS.join(" | ")} | mark |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n\n`;
  });
  const [begin, end] = [text.indexOf("### "), text.indexOf("## Differences")];
  writeFileSync(PAGE, text.slice(0, begin) + tables.join("") + text.slice(end));
}

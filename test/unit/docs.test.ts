import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { generatedDocs } from "../support/generated-docs.ts";
import { helpOfAll, optionsOf } from "../support/help.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGES = ["*.md", "{docs,sql}/**/*.md"].flatMap((pattern) => globSync(pattern, { cwd: ROOT })).sort();
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
/** Code blocks and code spans may hold what looks like a link or a heading. */
const withoutCode = (text: string) => text.replaceAll(/^ *```.*?^ *```$/gms, "").replaceAll(/`[^`\n]*`/g, "");

test("the lists that `npm run docs` makes from the code are not stale", async () => {
  const stale = [...(await generatedDocs())].filter(([path, text]) => read(path) !== text);
  expect(
    stale.map(([path]) => path),
    "Run `npm run docs`.",
  ).toEqual([]);
});

test("every relative link leads to a file and a heading", () => {
  const isBroken = (page: string, link: string) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : join(dirname(page), path);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(target).includes(anchor);
  };
  const links = found(/\]\(([^)\s]+)\)/g, withoutCode);
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter(([page, link]) => isBroken(page, link))).toEqual([]);
});

test("every command that a page shows is one, with the options that it has", async () => {
  const commands = new Map((await helpOfAll()).map(({ path, said }) => [path.join(" "), optionsOf(said)]));
  const shown = found(/(?:^(?:npx )?|`)usage-etl ([a-z][^#|>&`\n]*)/gm);
  expect(shown.length).toBeGreaterThan(50);
  const wrong = shown.filter(([, line]) => {
    const words = line.trim().split(/ +/);
    const name = [3, 2, 1].map((length) => words.slice(0, length).join(" ")).find((one) => commands.has(one));
    const options = commands.get(name ?? "") ?? [];
    const given = line.match(/(?<= )--[a-z-]+/g) ?? [];
    return name === undefined || given.some((option) => !options.includes(option));
  });
  expect(wrong).toEqual([]);
});

/** What a pattern's first group matches in each page. */
function found(pattern: RegExp, prepare = (text: string) => text): [page: string, match: string][] {
  return PAGES.flatMap((page) =>
    [...prepare(read(page)).matchAll(pattern)].map(([, match = ""]): [string, string] => [page, match]),
  );
}

/** Anchors that a code host makes of the headings of a page. */
function anchorsOf(page: string): string[] {
  const text = read(page).replaceAll(/^ *```.*?^ *```$/gms, "");
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

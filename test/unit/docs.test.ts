import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { generatedDocs } from "../support/generated-docs.ts";
import { helpOfAll, optionsOf } from "../support/help.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGES = ["*.md", "{docs,sql,src}/**/*.md"]
  .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
  .sort();
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

test("the lists that `npm run docs` makes from the code are not stale", async () => {
  const stale = [...(await generatedDocs())].filter(([path, text]) => read(path) !== text);
  expect(
    stale.map(([path]) => path),
    "Run `npm run docs`.",
  ).toEqual([]);
});

test("every command that a page shows is one, with the options that it has", async () => {
  const commands = new Map((await helpOfAll()).map(({ path, said }) => [path.join(" "), optionsOf(said)]));
  const shown = PAGES.flatMap((page) =>
    [...read(page).matchAll(/(?:^(?:npx )?|`)usage-etl ([a-z][^#|>&`\n]*)/gm)].map(
      ([, line = ""]) => [page, line] as const,
    ),
  );
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

test("every link of a page to a file or to a heading has it", () => {
  const anchorsOf = (text: string) =>
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    );
  const links = PAGES.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(
      ([, to = "", anchor]) => ({ page, file: to === "" ? page : join(dirname(page), to), anchor }) as const,
    ),
  );
  expect(links.length).toBeGreaterThan(200);
  const wrong = links.filter(({ file, anchor }) => {
    if (!existsSync(join(ROOT, file))) return true;
    return anchor !== undefined && file.endsWith(".md") && !anchorsOf(read(file)).includes(anchor);
  });
  expect(wrong).toEqual([]);
});

import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { SETTINGS } from "../../src/config/settings.ts";
import { helpOfAll, optionsOf } from "../support/help.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGES = ["*.md", "{docs,sql}/**/*.md"].flatMap((pattern) => globSync(pattern, { cwd: ROOT })).sort();
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
/** Code blocks and code spans may hold what looks like a link or a heading. */
const withoutCode = (text: string) => text.replaceAll(/^ *```.*?^ *```$/gms, "").replaceAll(/`[^`\n]*`/g, "");

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

test("every file and folder that a page names exists", () => {
  const paths = found(/`((?:src|jobs|sql|test|docs)\/[\w./-]+)`/g);
  const missing = paths.filter(([, path]) => !path.includes("NNNN") && !existsSync(join(ROOT, path)));
  expect(paths.length).toBeGreaterThan(50);
  expect(missing).toEqual([]);
});

/** Names to look up, and what commands print. */
const REFERENCE = ["cli", "cli-output", "settings", "views"].map((name) => `docs/${name}.md`);

test("a page of the docs answers one question in fewer than 200 lines, unless it is a list of names", () => {
  const long = PAGES.filter(
    (page) => page.startsWith("docs/") && read(page).trimEnd().split("\n").length >= 200,
  );
  expect(long.sort()).toEqual(REFERENCE.sort());
});

test("no page and no source refers to a page outside the repository", () => {
  const sources = globSync(["{src,jobs,test}/**/*.ts", "sql/**/*.sql"], { cwd: ROOT });
  const outside = /\b(?:platform-api|platform-facts|design|runtime)\.md\b/;
  expect(sources.length).toBeGreaterThan(300);
  expect([...PAGES, ...sources].filter((path) => outside.test(read(path)))).toEqual([]);
});

test("docs/settings.md names every setting", () => {
  const text = read("docs/settings.md");
  expect(Object.keys(SETTINGS).filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

test("docs/errors.md explains every error code", () => {
  const text = read("docs/errors.md");
  const files = ["src/**/*.ts", "jobs/*.ts"].flatMap((pattern) => globSync(pattern, { cwd: ROOT }));
  const codes = files.flatMap((file) =>
    [...read(file).matchAll(/\bcode: "([a-z_]+)"/g)].map(([, code]) => code),
  );
  expect(codes.length).toBeGreaterThan(50);
  // zod's own.
  const ours = [...new Set(codes)].filter((code) => code !== "custom");
  expect(ours.filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
});

test("docs/cli.md names every command and option", async () => {
  const text = read("docs/cli.md");
  const named = new Set(text.match(/--[a-z][a-z0-9-]*|[a-z][a-z0-9-]*/g));
  const help = await helpOfAll();
  expect(help.length).toBeGreaterThan(30);
  const commands = help.flatMap(({ path }) => path);
  const options = help.flatMap(({ said }) => optionsOf(said));
  expect(options).toContain("--dry-run");
  expect([...new Set([...commands, ...options])].filter((name) => !named.has(name))).toEqual([]);
});

test("docs/cli-output.md shows what each command prints (`npm run docs:cli`)", async () => {
  const [, outputs = ""] = read("docs/cli-output.md").split("<!-- outputs: npm run docs:cli -->");
  const blocks = outputs.split(/^\$ usage-etl /m).slice(1);
  const all = (await helpOfAll()).map(({ path }) => path.join(" "));
  const names = all.filter((name) => name !== "" && !all.some((one) => one.startsWith(`${name} `)));
  expect(names).toContain("backfill show");
  const isShown = (name: string) =>
    blocks.some(
      (block) =>
        block.split("\n")[0]?.split(" ").slice(0, name.split(" ").length).join(" ") === name &&
        block.trim().includes("\n"),
    );
  expect(names.filter((name) => !isShown(name))).toEqual([]);
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

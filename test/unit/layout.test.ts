import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

/** Which folders and features may import which. The rules for layers are in biome.jsonc. */

function folders(): string[] {
  const text = readFileSync("src/features.ts", "utf8");
  const folderOf = new Map(
    [...text.matchAll(/import \{ (\w+) \} from "\.\/features\/([\w-]+)\/feature\.ts"/g)].map(
      ([, name = "", folder = ""]) => [name, folder],
    ),
  );
  const [, list = ""] = /FEATURES[^=]*= \[([^\]]*)\]/.exec(text) ?? [];
  return ["servers", ...[...list.matchAll(/\w+/g)].map(([name]) => folderOf.get(name) ?? name)];
}

function importsBetween(
  files: Readonly<Record<string, string>>,
): { from: string; to: string; file: string }[] {
  return Object.entries(files).flatMap(([file, text]) =>
    [...text.matchAll(/(?:from|import|import\()\s*"(\.{1,2}\/[^"]+)"/g)].flatMap(([, path = ""]) => {
      const [, to] = /^src\/features\/([\w-]+)\//.exec(join(dirname(file), path)) ?? [];
      const [, from] = /^src\/features\/([\w-]+)\//.exec(file) ?? [];
      return to === undefined || from === undefined || to === from ? [] : [{ from, to, file }];
    }),
  );
}

function againstTheOrder(files: Readonly<Record<string, string>>): string[] {
  const order = folders();
  return importsBetween(files)
    .filter(({ from, to }) => order.indexOf(to) > order.indexOf(from) || !order.includes(to))
    .map(({ file, to }) => `${file} imports ${to}`);
}

function mutualFolders(files: Readonly<Record<string, string>>): string[] {
  const imports = new Set(
    Object.entries(files).flatMap(([file, text]) =>
      [...text.matchAll(/(?:from|import|import\()\s*"(\.{1,2}\/[^"]+)"/g)].map(
        ([, path = ""]) => `${dirname(file)} ${dirname(join(dirname(file), path))}`,
      ),
    ),
  );
  return [...imports].filter((pair) => {
    const [from = "", to = ""] = pair.split(" ");
    return from < to && imports.has(`${to} ${from}`);
  });
}

test("no two folders import each other", () => {
  const files = Object.fromEntries(
    globSync("{src,jobs}/**/*.ts").map((file) => [file, readFileSync(file, "utf8")]),
  );
  expect(mutualFolders(files)).toEqual([]);
  const planted = {
    "src/a/x.ts": 'import { y } from "../b/y.ts";',
    "src/b/z.ts": 'import { x } from "../a/x.ts";',
  };
  expect(mutualFolders(planted)).toEqual(["src/a src/b"]);
});

test("a feature imports only features that stand before it in src/features.ts", () => {
  const files = Object.fromEntries(
    globSync("src/features/*/**/*.ts").map((file) => [file, readFileSync(file, "utf8")]),
  );
  expect(new Set(folders())).toEqual(new Set(Object.keys(files).map((file) => file.split("/")[2])));
  expect(againstTheOrder(files)).toEqual([]);
  const planted = { "src/features/costs/planted.ts": 'import { x } from "../close/close.ts";' };
  expect(againstTheOrder(planted)).toEqual(["src/features/costs/planted.ts imports close"]);
});

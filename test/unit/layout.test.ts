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

test("a feature imports only features that stand before it in src/features.ts", () => {
  const files = Object.fromEntries(
    globSync("src/features/*/**/*.ts").map((file) => [file, readFileSync(file, "utf8")]),
  );
  expect(new Set(folders())).toEqual(new Set(Object.keys(files).map((file) => file.split("/")[2])));
  expect(againstTheOrder(files)).toEqual([]);
});

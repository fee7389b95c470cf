import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { expect, test } from "vitest";

/** Every command that a message, a document or the help shows is one that the command line takes, with its flags and values. */

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const FILES = globSync(["src/**/*.ts", "jobs/*.ts"], { cwd: ROOT }).sort();
/** A day is also a name, and stands for every value that a message fills in. */
const VALUE = "2026-03-01";

const hints = FILES.flatMap((file) =>
  [...readFileSync(join(ROOT, file), "utf8").matchAll(/\\?`usage-etl ((?:\$\{[^}]*\}|[^`\\])+)\\?`/g)].map(
    // What is called flags may be empty.
    ([, hint = ""]) => hint.replaceAll(/\$\{\w*Flags\}/g, "").replaceAll(/\$\{[^}]*\}/g, VALUE),
  ),
);

test("the sources name many commands", () => {
  expect(hints.length).toBeGreaterThan(40);
});

test.each(
  // A test of the command itself runs what is put together in code. `help` is no command of ours.
  [...new Set(hints)].filter((hint) => !hint.startsWith(VALUE) && hint !== "help").sort(),
)("usage-etl %s", async (hint) => {
  await parsed(hint.split(" "));
});

/** Command lines of the documents' shell blocks, without what the shell does with them. */
const LINES = [
  ...["*.md", "docs/**/*.md"]
    .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
    .flatMap((page) => [...readFileSync(join(ROOT, page), "utf8").matchAll(/^```sh\n(.*?)^```$/gms)])
    .map(([, block = ""]) => block),
  // Of the workflow, without what comes before a command and with a day for each variable.
  ...globSync("docs/examples/*.yml", { cwd: ROOT }).map((file) =>
    readFileSync(join(ROOT, file), "utf8")
      .replaceAll(/^ *- run: /gm, "")
      .replaceAll(/\$[A-Z]+/g, VALUE),
  ),
]
  .flatMap((block) => [...block.matchAll(/^(?:npx )?usage-etl (.+?)(?: +#.*| *[12]?[|>;&].*)?$/gm)])
  .map(([, line = ""]) => line.trimEnd())
  // The library that completes has it.
  .filter((line) => !line.startsWith("completion "));

test("the documents show many commands", () => {
  expect(LINES.length).toBeGreaterThan(20);
});

test.each([...new Set(LINES)].sort())("documents: usage-etl %s", async (line) => {
  await parsed([...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word));
});

const EXAMPLES = (
  await Promise.all(
    globSync("src/cli/commands/**/*.ts", { cwd: ROOT }).map(
      async (file) => (await import(join(ROOT, file))).examples ?? [],
    ),
  )
).flat() as [line: string, does: string][];

test.each(EXAMPLES.map(([line]) => line.replace(/ > .*/, "")).sort())("help: usage-etl %s", async (line) => {
  await parsed([...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word));
});

/** Parses a command line as the program does, and runs nothing. */
async function parsed([name = "", ...args]: readonly string[]): Promise<void> {
  const command = new Command(name);
  const [file = ""] = globSync(`src/cli/commands/**/${name}.ts`, { cwd: ROOT });
  const { define } = await import(join(ROOT, file));
  define(command);
  expect(command.commands.length === 0 || args.length > 0 || ["alerts", "backfill"].includes(name)).toBe(
    true,
  );
  for (const one of [command, ...allUnder(command)]) {
    one
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
      .option("--json")
      .action(() => {});
  }
  await command.parseAsync(args, { from: "user" });
}

test("a message names commands in backticks, so that they can be written as they are typed", () => {
  const unmarked = FILES.flatMap((file) =>
    readFileSync(join(ROOT, file), "utf8")
      .split("\n")
      .filter((line) => !/^\s*(\/\/|\/?\*)/.test(line) && /(?<!`)\busage-etl (?=[a-z])/.test(line))
      .filter((line) => !/application_name|hashtext|Made by|npx --package/.test(line)),
  );
  // Chat programs show the text of the webhook to people elsewhere.
  expect(
    unmarked.filter((line) => !/See usage-etl (status|owners budgets|owners suggest)\./.test(line)),
  ).toEqual([]);
});

function allUnder(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...allUnder(one)]);
}

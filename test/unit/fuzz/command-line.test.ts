import fc from "fast-check";
import { expect, test } from "vitest";
import { EXIT } from "../../../src/terminal/exit.ts";
import { runHere } from "../../support/in-process.ts";
import { holds, KEY, SEED } from "./fuzz.ts";

async function run(args: readonly string[], more = {}): Promise<{ code: number | null; said: string }> {
  const env = { USAGE_BASE_URL: "http://127.0.0.1:9", USAGE_API_KEY: KEY, ...more };
  const { code, stdout, stderr } = await runHere(args, env);
  return { code, said: stdout + stderr };
}

const commands =
  `plan, sync, backfill, backfill list, backfill show, backfill cancel, reconcile, totals, close,
  coverage, status, runs list, runs show, config, doctor, data-start, export, prices list,
  prices import, prune, probe, migrate, nonsense, platform template get, platform deployment get,
  platform deployment wait, platform run, platform a2a send, platform a2a task`.split(/,\s+/);
const flags =
  `--from --to --stride --group-by --workspace --reprocess --dry-run --inline --wait --detach --json
  --reach --without --view --columns --format --within --yes --source --assistant --repair --x --help`.split(
    /\s+/,
  );
const values = [
  ...`2026-03-01 2026-03-08 0001-01-01 9999-12-31 -1 NaN P1D PT0S P99999999Y hour day user 2026-03 0000-00
  9999-99 99999999999999999999 1 9007199254740991 2147483648 __proto__ /nowhere /dev/null é🚀`.split(/\s+/),
  "",
  " ",
  "a\nb",
  "\u0000",
];
const argument = fc.oneof(fc.constantFrom(...flags), fc.constantFrom(...values));
const line = fc
  .tuple(fc.constantFrom(...commands), fc.array(argument, { maxLength: 6 }))
  .map(([command, more]) => [...command.split(" "), ...more]);

test(`every command line ends with a known exit code and a sentence, never a stack (seed ${SEED})`, async () => {
  await holds("command", line, 100, async (args) => {
    const { code, said } = await run(args);
    expect(Object.values(EXIT)).toContain(code);
    expect([args, said]).not.toEqual([
      args,
      expect.stringMatching(/^ {4}at |\b(Type|Range|Syntax|Reference)Error\b/m),
    ]);
    expect(said).not.toContain(KEY);
    if (args.includes("--json") && code !== 0) {
      const { length, [length - 1]: last = "" } = said.trimEnd().split("\n");
      const document = JSON.parse(last);
      const isChecks = args[0] === "doctor" && Array.isArray(document);
      if (isChecks) expect(document).toContainEqual(expect.objectContaining({ status: "fail" }));
      else expect([args, Object.keys(document)]).toEqual([args, ["code", "message", "hint"]]);
      expect([args, length]).toEqual([args, 1]);
    }
    // Nothing is reached, so nothing but help, settings and plans succeeds.
    expect(code).not.toBe(EXIT.unexpected);
  });
});

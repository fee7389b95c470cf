import { execFileSync } from "node:child_process";
import { Writable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openStdoutTarget } from "../../src/cli/commands/files/target.ts";
import { printable } from "../../src/printable.ts";
import { controlsIn } from "../support/controls.ts";

test.each([
  ["an escape sequence", "\u001b[2Jgone\u0007", "\\u001b[2Jgone\\u0007"],
  ["a C1 control", "\u009b31m", "\\u009b31m"],
  ["a line that overwrites itself", "ok\rFAILED", "ok\\u000dFAILED"],
  ["a line that runs backwards", "abc\u202edcba\u2066", "abc\\u202edcba\\u2066"],
  ["other scripts, emoji and our layout", "Zürich – 営業 👩‍👩‍👧\n\tשלום", "Zürich – 営業 👩‍👩‍👧\n\tשלום"],
])("%s is shown without effect", (_what, text, shown) => {
  expect(printable(text)).toBe(shown);
});

test("no text keeps a control, and a JSON document stays the same", () => {
  const text = fc.string({ unit: "binary" });
  fc.assert(
    fc.property(fc.dictionary(text, text, { maxKeys: 3 }), (given) => {
      const shown = printable(JSON.stringify(given));
      expect(controlsIn(shown)).toEqual([]);
      expect(JSON.stringify(JSON.parse(shown))).toBe(JSON.stringify(given));
    }),
  );
  fc.assert(
    fc.property(text, (given) => {
      expect(controlsIn(printable(given))).toEqual([]);
    }),
  );
});

test("log lines control no terminal", () => {
  const script = `
    const { createLogger } = await import("./src/log.ts");
    createLogger("info", "stdout").info({ name: "\\u009b2J\\u202e" }, "said");
  `;
  const written = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(controlsIn(written)).toEqual([]);
  expect(JSON.parse(written)).toMatchObject({ msg: "said", name: "\u009b2J\u202e" });
});

test.each([
  [true, "a,\\u001b[2J\n"],
  [false, "a,\u001b[2J\n"],
])("an export is exact, but on a terminal (%s) it controls nothing", async (isTTY, shown) => {
  let written = "";
  const stdout = Object.assign(
    new Writable({
      write: (chunk, _encoding, done) => {
        written += chunk;
        done();
      },
    }),
    { isTTY },
  );
  await openStdoutTarget(stdout as unknown as NodeJS.WriteStream).write(Buffer.from("a,\u001b[2J\n"));
  expect(written).toBe(shown);
});

import { execFileSync } from "node:child_process";
import { Writable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { printable } from "../../../../src/core/base/printable.ts";
import { openStdoutTarget } from "../../../../src/features/export/target.ts";
import { controlsIn } from "../../../support/controls.ts";

test("controls are shown without effect; other scripts, emoji and our layout stay", () => {
  expect(printable("\u001b[2Jgone\u0007 ok\rFAILED \u202edcba")).toBe(
    "\\u001b[2Jgone\\u0007 ok\\u000dFAILED \\u202edcba",
  );
  const text = "Zürich – 営業 👩‍👩‍👧\n\tשלום";
  expect(printable(text)).toBe(text);
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
    const { createLogger } = await import("./src/core/base/log.ts");
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

import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRedactor, withoutSecret } from "../../../../src/platform/http/redact.ts";

const SECRET = "lsv2_sk_9F8e7D6c5B4a";
const redact = createRedactor(SECRET);

describe("createRedactor", () => {
  it("hides the secret in any case and encoding, and a beginning from half its length on", () => {
    expect(redact(`a ${SECRET} b ${SECRET.toLowerCase()}${SECRET}`)).toBe(
      "a [redacted] b [redacted][redacted]",
    );
    expect(redact(`a${SECRET.slice(0, 10)}...`)).toBe("a[redacted]...");
    expect(redact(SECRET.slice(0, 9))).toBe(SECRET.slice(0, 9));
  });

  it("hides any secret, whatever characters it has", () => {
    const secret = fc.string({ minLength: 2, maxLength: 40 }).filter((text) => /^[\x21-\x7e]+$/.test(text));
    fc.assert(
      fc.property(secret, (text) => {
        // Dots around: what is hidden is the secret, not its surroundings.
        const encoded = [text, encodeURIComponent(text), encodeURI(text), JSON.stringify(text).slice(1, -1)];
        const hide = createRedactor(text);
        for (const form of encoded) expect(hide(`\n${form}\n`)).toBe("\n[redacted]\n");
      }),
    );
  });
});

describe("withoutSecret", () => {
  it("keeps name, code and causes without the secret", () => {
    const deepest = Object.assign(new TypeError(`bad ${SECRET}`), { code: "E_DEEP", data: SECRET });
    const first = new Error(SECRET, { cause: deepest });
    const several = new AggregateError([first, new Error("other"), SECRET], SECRET);
    const copy = withoutSecret(several, redact);
    expect(inspect(copy, { depth: 9, showHidden: true })).not.toContain(SECRET);
    expect(copy).toMatchObject({
      name: "AggregateError",
      message: "[redacted]",
      errors: [
        { message: "[redacted]", cause: { name: "TypeError", code: "E_DEEP", message: "bad [redacted]" } },
        { message: "other" },
        { message: "[redacted]" },
      ],
    });
  });

  it("cuts a circular chain of causes", () => {
    const error = new Error("a");
    error.cause = error;
    expect(inspect(withoutSecret(error, redact), { depth: 20 }).match(/Error: a/g)?.length).toBeLessThan(10);
  });
});

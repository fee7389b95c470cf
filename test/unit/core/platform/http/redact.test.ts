import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRedactor, hideTexts, withoutSecret } from "../../../../../src/core/platform/http/redact.ts";

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
        const encoded = [text, encodeURIComponent(text), encodeURI(text), JSON.stringify(text).slice(1, -1)];
        const hide = createRedactor(text);
        for (const form of encoded) expect(hide(`\n${form}\n`)).toBe("\n[redacted]\n");
      }),
    );
  });
});

describe("hideTexts", () => {
  const sent = {
    name: "chat-agent",
    secrets: [{ name: "OPENAI_API_KEY", value: 'sk-"quoted"-Zürich-0123456789' }],
    env: { PIN: 48151623, PORT: "8123", DEBUG: true, NONE: null, EMPTY: "" },
  };

  it("hides sent values, and leaves names and whatever is shorter than a word", () => {
    const text = `chat-agent: OPENAI_API_KEY is ${sent.secrets[0]?.value}, PIN is 48151623, PORT 8123 of 181234 true`;
    expect(hideTexts(text, sent)).toBe(
      "chat-agent: OPENAI_API_KEY is [redacted], PIN is [redacted], PORT [redacted] of 181234 true",
    );
    expect(hideTexts("to be or not", { text: "to be" })).toBe("[redacted] or not");
    expect(hideTexts("a bc", { a: "a", b: "bc" })).toBe("a bc");
  });

  it.each([30_000, 3_000_000])("hides what was sent %d levels deep", (levels) => {
    let sent: unknown = { name: "chat-agent", value: "sk-0123456789" };
    for (let i = 0; i < levels; i += 1) sent = i % 2 === 0 ? [sent] : { name: sent };
    expect(hideTexts("chat-agent: sk-0123456789", sent)).toBe("chat-agent: [redacted]");
  });

  it("hides every part of nine characters, however the response cuts or escapes it", () => {
    const secret = fc.string({ unit: "grapheme", minLength: 9, maxLength: 60 });
    fc.assert(
      fc.property(secret, fc.nat(), fc.nat(), (text, from, length) => {
        // Else what stands around the piece may be a part of the secret too.
        fc.pre(!/[<>]/.test(text));
        const escapes = [
          (one: string) => one,
          (one: string) => JSON.stringify(one).slice(1, -1),
          (one: string) => encodeURIComponent(one.toWellFormed()),
        ];
        for (const escaped of escapes) {
          const whole = escaped(text);
          const start = from % (whole.length - 8);
          const piece = whole.slice(start, start + 9 + (length % 50));
          expect(hideTexts(`<${piece}>`, { deep: [{ value: text }] })).toBe("<[redacted]>");
        }
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
});

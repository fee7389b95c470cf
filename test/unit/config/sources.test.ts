import { describe, expect, test } from "vitest";
import { readConfig } from "../../../src/config/config.ts";
import { file, ID, KEY, problemsOf, SOURCE } from "./settings.ts";

describe("several sources", () => {
  const read = (content: unknown, more: Record<string, string> = {}) => ({
    USAGE_SOURCES_FILE: file(typeof content === "string" ? content : JSON.stringify(content), "sources.json"),
    ...more,
  });
  const eu = { slug: "eu", baseUrl: "https://eu.example.com", apiKey: KEY };

  test("have their own defaults, and ids in lower case", () => {
    const upper = "AAAAAAAA-2222-3333-4444-555555555555";
    const { sources } = readConfig(read([eu, { ...eu, slug: "us", workspaceIds: [upper], rateLimit: 5 }]));
    expect(sources).toMatchObject([
      { slug: "eu", dataStart: "2026-01-05", rateLimit: 200, workspaceIds: [] },
      { slug: "us", rateLimit: 5, workspaceIds: [upper.toLowerCase()] },
    ]);
  });

  test("read keys from files", () => {
    const { sources } = readConfig(read([{ slug: "eu", baseUrl: eu.baseUrl, apiKeyFile: file(`${KEY}\n`) }]));
    expect(sources[0]?.apiKey.reveal()).toBe(KEY);
  });

  test.each([
    ["not JSON", "{", "is not JSON"],
    ["an empty list", [], "holds no source"],
    ["a slug twice", [eu, eu], "slug eu is used twice"],
    ["a slug with capitals", [{ ...eu, slug: "EU" }], "must be lower-case"],
    ["an unknown field", [{ ...eu, apikey: "x" }], "apikey"],
    ["no key", [{ slug: "eu", baseUrl: eu.baseUrl }], "needs apiKey or apiKeyFile"],
    ["two keys", [{ ...eu, apiKeyFile: "/x" }], "needs apiKey or apiKeyFile"],
    ["no base URL", [{ slug: "eu", apiKey: KEY }], "baseUrl"],
    ["an organization with a line end", [{ ...eu, organizationId: "a\nb" }], "organizationId has a space"],
    ["a token with a space", [{ ...eu, bearerToken: "a b" }], "bearerToken has a space"],
    [
      "two tokens",
      [{ ...eu, bearerToken: "abcdefgh", bearerTokenFile: "/b" }],
      "has bearerToken and bearerTokenFile",
    ],
    ["a workspace of no control plane", [{ ...eu, workspaceId: ID }], "those to load are workspaceIds"],
  ])("%s is refused", (_, content, text) => {
    const problems = problemsOf(read(content)).join("\n");
    expect(problems).toContain(text);
    expect(problems).not.toContain(KEY);
  });

  test("and USAGE_BASE_URL together are refused", () => {
    expect(problemsOf(read([eu], SOURCE)).join("\n")).toContain("keep one of them");
  });
});

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readConfig } from "../../../../src/core/base/config.ts";
import { withEnvFile } from "../../../../src/core/base/env-file.ts";
import { readPriceFile } from "../../../../src/features/costs/price-file.ts";
import { readOwnerFile } from "../../../../src/features/owners/owner-file.ts";
import { temporaryFile, temporaryFolder } from "../../../support/temporary.ts";

/** Files that people write, as editors on Windows save them. */

const folder = () => {
  const path = temporaryFolder();
  return (name: string, bytes: Uint8Array) => {
    writeFileSync(join(path, name), bytes);
    return join(path, name);
  };
};

const PRICES = "sku,unit_price,currency,valid_from\r\ntraces,0.5,USD,2026-01-01\r\n";
const YAML = "rules:\n  - owner: Sales é\n    workspace: w\n";
const CSV = "owner,workspace\r\nSales é,w\r\n";
const SOURCES = JSON.stringify([{ slug: "eu", baseUrl: "https://eu.example.com", apiKey: "a-key" }]);

test.each([
  ["UTF-8", (text: string) => Buffer.from(text)],
  ["UTF-8 with a mark", (text: string) => Buffer.from(`\ufeff${text}`)],
  ["UTF-16LE with a mark", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le")],
  ["UTF-16BE with a mark", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").swap16()],
])("prices, owners, sources, settings and secrets are read in %s", async (_, encode) => {
  const write = folder();
  expect(await readPriceFile(write("prices.csv", encode(PRICES)))).toMatchObject([
    { price: { sku: "traces" } },
  ]);
  for (const [name, text] of [
    ["owners.yaml", YAML],
    ["owners.csv", CSV],
  ] as const)
    expect((await readOwnerFile(write(name, encode(text)))).rules, name).toMatchObject([
      { shares: [{ owner: "Sales é" }] },
    ]);
  const sources = readConfig({ USAGE_SOURCES_FILE: write("sources.json", encode(SOURCES)) }).sources;
  expect(sources.map(({ slug, apiKey }) => [slug, apiKey.reveal()])).toEqual([["eu", "a-key"]]);
  const token = write("token", encode("tökens-of-sixteen-characters\r\n"));
  const env = write("usage.env", encode(`USAGE_USER_EMAIL=drop\r\nUSAGE_WEB_TOKEN_FILE=${token}\r\n`));
  const { userEmail, webToken } = readConfig(withEnvFile({ USAGE_ENV_FILE: env }));
  expect([userEmail, webToken?.reveal()]).toEqual(["drop", "tökens-of-sixteen-characters"]);
});

test.each([
  ["Latin-1", (text: string) => Buffer.from(text.replace("w", "é"), "latin1")],
  ["UTF-16 without a mark", (text: string) => Buffer.from(text, "utf16le")],
  ["UTF-16 that is cut", (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").subarray(0, -1)],
])("a file in %s is refused by name", async (_, encode) => {
  const write = folder();
  const isNoText = /\/[\w.]+ cannot be read: it is not text in UTF-8, or in UTF-16 with a byte order mark/;
  await expect(readPriceFile(write("prices.csv", encode(PRICES.replace("traces", "w"))))).rejects.toThrow(
    isNoText,
  );
  await expect(readOwnerFile(write("owners.yaml", encode(YAML)))).rejects.toThrow(isNoText);
  const sources = write("sources.json", encode(SOURCES.replace("eu.example", "w.example")));
  expect(() => readConfig({ USAGE_SOURCES_FILE: sources })).toThrow(isNoText);
  const env = write("usage.env", encode("USAGE_USER_EMAIL=drop # w\n"));
  expect(() => withEnvFile({ USAGE_ENV_FILE: env })).toThrow(isNoText);
  expect(() => readConfig({ USAGE_API_KEY_FILE: env })).toThrow(isNoText);
});

test("a mistake in the file of sources is named by its place, without the text around it", () => {
  const file = temporaryFile('[{\n  "apiKey": "hunter2",,\n}]');
  expect(() => readConfig({ USAGE_SOURCES_FILE: file })).toThrow(/ is not JSON \(line 2 column \d+\)$/m);
  expect(() => readConfig({ USAGE_SOURCES_FILE: file })).not.toThrow(/hunter2/);
});

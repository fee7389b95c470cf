import { rmSync, writeFileSync } from "node:fs";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
  configurationDigest,
  readConfig,
  requireDatabaseUrl,
  secretFilesOf,
} from "../../../src/config/config.ts";
import { file, KEY, SOURCE } from "./settings.ts";

describe("secrets", () => {
  test("are read from files without the line end and shown nowhere", () => {
    const config = readConfig({
      USAGE_BASE_URL: "https://api.example.com",
      USAGE_API_KEY_FILE: file(`${KEY}\n`),
      DATABASE_URL_FILE: file("postgres://me:hunter2@host/db\r\n"),
    });
    expect(config.sources[0]?.apiKey.reveal()).toBe(KEY);
    expect(requireDatabaseUrl(config).reveal()).toBe("postgres://me:hunter2@host/db");
    for (const shown of [JSON.stringify(config), inspect(config, { depth: 9 }), `${config.databaseUrl}`]) {
      expect(shown).not.toContain(KEY);
      expect(shown).not.toContain("hunter2");
    }
  });

  test("are read again for each use, and keep their last value while the file has none that fits", () => {
    const path = file("postgres://me:one@host/db");
    const { databaseUrl } = readConfig({ DATABASE_URL_FILE: path });
    if (databaseUrl === undefined) throw new Error("no address");
    const of = (content: string) => {
      writeFileSync(path, content);
      return [databaseUrl.reveal(), databaseUrl.problem()];
    };
    expect(of("postgres://me:two@host/db\n")).toEqual(["postgres://me:two@host/db", undefined]);
    for (const [content, problem] of [
      ["", `DATABASE_URL_FILE ${path} is empty`],
      ["hunter3", expect.stringMatching(/^DATABASE_URL is not of the form (?!.*hunter3)/)],
    ] as const) {
      expect(of(content)).toEqual(["postgres://me:two@host/db", problem]);
    }
    rmSync(path);
    expect([databaseUrl.reveal(), databaseUrl.problem()]).toEqual([
      "postgres://me:two@host/db",
      `DATABASE_URL_FILE ${path} cannot be read: ENOENT`,
    ]);
    expect(of("postgres://me:four@host/db")).toEqual(["postgres://me:four@host/db", undefined]);
    expect([...secretFilesOf(readConfig({ DATABASE_URL_FILE: path })).keys()]).toEqual(["DATABASE_URL_FILE"]);
    expect(secretFilesOf(readConfig({ DATABASE_URL: "postgres://x" })).size).toBe(0);
  });

  test("change the digest, which does not contain them", () => {
    const [one, other] = [KEY, `${KEY}2`].map(
      (USAGE_API_KEY) => readConfig({ ...SOURCE, USAGE_API_KEY }).sources[0],
    );
    if (one === undefined || other === undefined) throw new Error("no source");
    expect(configurationDigest(one)).toMatch(/^[0-9a-f]{32}$/);
    expect(configurationDigest(one)).not.toBe(configurationDigest(other));
  });
});

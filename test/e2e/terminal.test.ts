import { expect, test } from "vitest";
import { usageEtl } from "../support/cli.ts";
import { onTerminal } from "../support/terminal.ts";

test("a terminal shows what a pipe carries, and lines that do not fit are found", async () => {
  const args = ["plan", "--from", "2026-03-04", "--to", "2026-03-01"];
  const [terminal, narrow] = [onTerminal(args), onTerminal(args, {}, { columns: 30 })];
  const piped = await usageEtl(args);
  expect(await terminal.ended).toBe(piped.code);
  await narrow.ended;
  const lines = `${piped.stdout}${piped.stderr}`.trimEnd().split("\n");
  expect((await terminal.lines()).join("")).toBe(lines.join(""));
  expect(await narrow.tooLong()).toEqual(lines.filter((line) => line.length > 30));
});

test("a program on a terminal is typed to, and Ctrl-C ends it", async () => {
  const terminal = onTerminal(["standin"]);
  await terminal.shows(/USAGE_BASE_URL=http:/);
  terminal.type("\u0003");
  expect(await terminal.ended).toBe(0);
});

import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { Spool } from "../../../../../src/core/platform/billing/export.ts";

function ownFolder(): string {
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-spool-"));
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

async function filled(pieces: readonly Buffer[]): Promise<Spool> {
  const spool = new Spool();
  onTestFinished(() => spool.close());
  for (const piece of pieces) await spool.push(piece);
  return spool;
}

async function all(spool: Spool, lent: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of spool.chunks({ lent })) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

test.each([
  ["nothing", 0, 1],
  ["what fits into memory", 1_000_000, 65_536],
  ["one byte more than that", 1_048_577, 65_536],
  ["many pieces of odd sizes", 3_000_001, 70_001],
])("A spool returns %s, as often as it is read", async (_, bytes, size) => {
  const folder = ownFolder();
  const whole = Buffer.from(Array.from({ length: bytes }, (__, i) => (i * 31) % 251));
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes; at += size) pieces.push(whole.subarray(at, at + size));
  const spool = await filled(pieces);
  expect(spool.bytes).toBe(bytes);
  for (const lent of [true, false, true]) expect((await all(spool, lent)).equals(whole)).toBe(true);
  // Nothing that a killed process would leave behind, or anybody else could read.
  expect(readdirSync(folder)).toEqual([]);
});

test("Chunks that are not lent stay valid", async () => {
  const spool = await filled(Array.from({ length: 40 }, (_, i) => Buffer.alloc(65_536, i)));
  const kept: Buffer[] = [];
  for await (const chunk of spool.chunks()) kept.push(chunk);
  expect(kept.map((chunk) => chunk[0])).toEqual(Array.from({ length: 40 }, (_, i) => i));
});

test("Pieces that are in the file do not wait in memory", async () => {
  const program = fileURLToPath(new URL("./spool-garbage.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-semi-space-size=4", program]);
  const { bytes, mostMb } = JSON.parse(stdout);
  expect(bytes).toBe(131_072_000);
  // 4 MB; 22 to 26 MB if V8 is left to itself.
  expect(mostMb).toBeLessThan(13);
}, 60_000);

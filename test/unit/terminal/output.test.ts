import { expect, onTestFinished, test, vi } from "vitest";
import { createOutput, table } from "../../../src/terminal/output.ts";
import { controlsIn } from "../../support/controls.ts";

test("nothing that a server sent controls the terminal, and --json stays exact", () => {
  const nasty = "\u001b[2J\u009b31m\u202ex";
  const written: string[] = [];
  for (const to of ["stdout", "stderr"] as const) {
    const spied = vi
      .spyOn(process[to], "write")
      .mockImplementation((piece) => written.push(String(piece)) > 0);
    onTestFinished(() => spied.mockRestore());
  }
  const output = createOutput({ json: false });
  output.data(nasty, (name) => `name: ${name}\n${table(["name"], [[name]])}`);
  output.note(`new: ${nasty}`);
  createOutput({ json: true }).data({ name: nasty }, () => "");
  for (const piece of written) expect(controlsIn(piece)).toEqual([]);
  expect(JSON.parse(written.at(-1) ?? "")).toEqual({ name: nasty });
});

function saidBy(work: (output: ReturnType<typeof createOutput>) => void): string[] {
  const written = (["stdout", "stderr"] as const).map((to) => {
    return vi.spyOn(process[to], "write").mockReturnValue(true);
  });
  work(createOutput({ json: true }));
  const said = written.flatMap((spied) => spied.mock.calls.map(([line]) => String(line)));
  for (const spied of written) spied.mockRestore();
  return said;
}

test("--json shows all instants alike, however the code holds them", () => {
  const at = "2026-03-01T05:00:00Z";
  const forms = [
    { start: Date.UTC(2026, 2, 1, 5), bucketStart: at },
    { from: "2026-03-01T05:00Z", to: "2026-03-01" },
    { nextRetry: new Date(at), name: "2026-03-01", firstDay: "2026-03-01" },
  ];
  expect(JSON.parse(saidBy((output) => output.data(forms, () => ""))[0] ?? "")).toEqual([
    { start: at, bucketStart: at },
    { from: at, to: "2026-03-01T00:00:00Z" },
    { nextRetry: at, name: "2026-03-01", firstDay: "2026-03-01" },
  ]);
});

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { World } from "./world.ts";

const { CHAOS_OUT = "" } = process.env;

export type Line =
  | { readonly fault: string; readonly failed: string }
  | {
      readonly fault: string;
      readonly lasted: number;
      readonly recovered: number;
      readonly within: number;
      readonly faults?: number;
      readonly shown?: number;
    };

function note(line: Line): void {
  if (CHAOS_OUT !== "")
    writeFileSync(join(CHAOS_OUT, "rows.jsonl"), `${JSON.stringify(line)}\n`, { flag: "a" });
}

function keepLogs({ workers }: World, name: string): void {
  if (CHAOS_OUT === "") return;
  const folder = join(CHAOS_OUT, name.replaceAll(/\W+/g, "-"));
  mkdirSync(folder, { recursive: true });
  workers.forEach(({ running: { said } }, i) => {
    writeFileSync(join(folder, `worker-${i}.log`), said.stdout + said.stderr);
  });
}

export async function reported(world: World, fault: string, work: () => Promise<Line>): Promise<void> {
  try {
    note(await work());
  } catch (error) {
    keepLogs(world, fault);
    note({ fault, failed: (error as Error).message });
    throw error;
  }
}

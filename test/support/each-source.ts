import type pg from "pg";
import { beforeEach } from "vitest";
import type { Store } from "../../src/core/store/db/database.ts";
import { connectPlain, setupSource } from "./reporting.ts";

export let store: Store;
export let sourceId: number;
export let client: pg.Client;

export function setUpEachSource(): void {
  beforeEach(async () => {
    const source = await setupSource();
    ({ store, sourceId } = source);
    client = await connectPlain(source.url);
  });
}

export async function lines(text: string): Promise<string[]> {
  const { rows } = await client.query<string[]>({ text, rowMode: "array" });
  return rows.map((row) => row.map((cell) => cell ?? "-").join(" "));
}

import type pg from "pg";
import { beforeEach } from "vitest";
import type { Store } from "../../src/core/store/db/database.ts";
import { connectPlain, setupSource } from "./reporting.ts";

/** A source with a connection to its database, new for each test of a file. */

export let store: Store;
export let sourceId: number;
export let client: pg.Client;

/** Once in the file. */
export function setUpEachSource(): void {
  beforeEach(async () => {
    const source = await setupSource();
    ({ store, sourceId } = source);
    client = await connectPlain(source.url);
  });
}

/** A query's rows, a line each: its cells between blanks, null as a dash. */
export async function lines(text: string): Promise<string[]> {
  const { rows } = await client.query<string[]>({ text, rowMode: "array" });
  return rows.map((row) => row.map((cell) => cell ?? "-").join(" "));
}

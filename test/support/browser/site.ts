import { openStore } from "../../../src/store/db/database.ts";
import { migrate } from "../../../src/store/db/migrate.ts";
import { createTestDatabase, ensureTemplate } from "../database.ts";
import { openPages } from "../pages.ts";
import { ensureStory } from "../story.ts";

type PagesOptions = NonNullable<Parameters<typeof openPages>[1]>;

/** Pages of a database with the story of story.ts, or of an empty one, for all tests of a file. */
export async function openSite(template: "story" | "migrated", options: PagesOptions = {}) {
  if (template === "story") await ensureStory();
  else await ensureTemplate("migrated", migrated);
  const database = await createTestDatabase({ template });
  const store = openStore({ url: database.url });
  // The stand-in of the story is gone: pages ask no platform.
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const pages = await openPages({ databaseUrl: database.url, standin, store }, options);
  return {
    ...pages,
    store,
    close: async () => {
      await pages.close();
      await store.close();
      await database.drop();
    },
  };
}

async function migrated(url: string): Promise<void> {
  const store = openStore({ url });
  await migrate(store);
  await store.close();
}

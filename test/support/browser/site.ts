import { openStore, type Store } from "../../../src/core/store/db/database.ts";
import { createTestDatabase, ensureTemplate } from "../database.ts";
import { HOSTILE } from "../hostile.ts";
import { openPages } from "../pages.ts";
import { buildMigrated } from "../store.ts";
import { ensureStory } from "../story.ts";

type PagesOptions = NonNullable<Parameters<typeof openPages>[1]>;
/** What is served beside the database, which the rest of it may need. */
type Options = PagesOptions | ((store: Store) => PagesOptions);

/** Pages of a database with the story of story.ts, or of an empty one, for all tests of a file. */
export async function openSite(template: "story" | "migrated", options: Options = {}) {
  if (template === "story") await ensureStory();
  else await ensureTemplate("migrated", buildMigrated);
  const database = await createTestDatabase({ template });
  const store = openStore({ url: database.url });
  // The stand-in of the story is gone: pages ask no platform.
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const given = typeof options === "function" ? options(store) : options;
  const pages = await openPages({ databaseUrl: database.url, standin, store }, given);
  return {
    ...pages,
    store,
    databaseUrl: database.url,
    close: async () => {
      await pages.close();
      await store.close();
      await database.drop();
    },
  };
}

/** The site of the story, and the paths of its screens (screens.ts) with what only its database knows. */
export async function openStory(options?: Options) {
  const site = await openSite("story", options);
  const { rows } = await site.store.transaction(({ client }) =>
    client.query<{ id: string }>(
      "SELECT workspace_id AS id FROM reporting.dim_workspace WHERE workspace_name = $1",
      [HOSTILE.workspaces[0]],
    ),
  );
  const workspace = rows[0]?.id ?? "none";
  return { ...site, at: (path: string) => path.replace("WORKSPACE", workspace) };
}

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { generatedDocs } from "./generated-docs.ts";

/** `npm run docs`: writes the lists of the documents that are made from the code. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
for (const [path, text] of await generatedDocs()) {
  mkdirSync(dirname(join(ROOT, path)), { recursive: true });
  writeFileSync(join(ROOT, path), text);
}

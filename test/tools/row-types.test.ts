import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { setupStore } from "../integration/store/setup.ts";
import { ROOT, rowTypesCommand } from "../support/schema-dump.ts";

test("src/store/db/tables.ts has the row types that kysely-codegen makes of the migrations", async () => {
  const { url, reader } = await setupStore();
  const [file, options] = await rowTypesCommand(reader, url);
  const output = await promisify(execFile)(file, [...options, "--verify"], { cwd: ROOT }).then(
    () => "",
    ({ stdout, stderr }) => `${stdout}\n${stderr}`,
  );
  expect(output, "Run `npm run schema` and read the diff.").toBe("");
});

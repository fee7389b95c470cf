import { parseArgs } from "node:util";
import { measureAll } from "./all.ts";

/** `npm run bench`: loads. `-- --all` and `-- --nightly`, both with `--rounds N`: see all.ts. */
const { values } = parseArgs({
  options: { all: { type: "boolean" }, nightly: { type: "boolean" }, rounds: { type: "string" } },
  strict: false,
});
if (values.all === true || values.nightly === true) {
  const nightly = values.nightly === true;
  await measureAll({ nightly, rounds: Number(values.rounds ?? (nightly ? 3 : 5)) });
} else await import("./load.ts");

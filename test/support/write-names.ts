import { writeFileSync } from "node:fs";
import { LIST, newestSection, publicNames } from "./public-names.ts";

/** `npm run names`: writes the list of public names, at a release. Before the first release nobody relies on a name. */

const { isReleased, isFirst } = newestSection();
if (isReleased || isFirst) writeFileSync(LIST, `${(await publicNames()).join("\n")}\n`);
else {
  process.stderr.write(
    "The newest section of CHANGELOG.md has no day, so the list stays that of the release before. Write it at the release.\n",
  );
  process.exitCode = 1;
}

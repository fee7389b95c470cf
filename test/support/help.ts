import { runHere } from "./in-process.ts";

export async function helpOfAll(
  path: readonly string[] = [],
): Promise<{ path: readonly string[]; said: string }[]> {
  const { stdout: said } = await runHere([...path, "--help"]);
  const sections = said.split(/^(?=[A-Z].*:$)/m).filter((one) => !/^(Arguments|Options|Examples):/.test(one));
  const names = sections.flatMap((one) =>
    [...one.matchAll(/^ {2}([a-z][a-z0-9-]*)/gm)].map(([, name = ""]) => name),
  );
  const beneath = [];
  for (const name of names.filter((one) => one !== "help"))
    beneath.push(...(await helpOfAll([...path, name])));
  return [{ path, said }, ...beneath];
}

export const optionsOf = (said: string): string[] => said.match(/(?<=^ +)--[a-z][a-z0-9-]*/gm) ?? [];

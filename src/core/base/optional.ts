import { UsageError } from "./errors.ts";

/** Node's message for a missing package. For a missing file of our own, Node names a `module`. */
const NOT_INSTALLED = /Cannot find package '([^']+)'/;

export class PackageMissingError extends UsageError {}

/** Loads code that needs an optional package (`optionalDependencies` of package.json). Error: `package_missing`. */
export async function loadOptional<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const [, name] = NOT_INSTALLED.exec((error as Error).message) ?? [];
    if (name === undefined) throw error;
    throw new PackageMissingError({
      code: "package_missing",
      message: `The package ${name} is required and not installed.`,
      next: `Run \`npm install ${name}\` in the folder of the program, or install the program with its optional packages.`,
      cause: error,
    });
  }
}

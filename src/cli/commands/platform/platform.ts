import type { Command } from "commander";
import { addA2aCommands } from "./a2a.ts";
import { addDeploymentCommands } from "./deployment.ts";
import { addRunCommand } from "./run.ts";
import { addTemplateCommands } from "./template.ts";

export function define(platform: Command): void {
  addTemplateCommands(platform);
  addDeploymentCommands(platform);
  addRunCommand(platform);
  addA2aCommands(platform);
}

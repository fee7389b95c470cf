import type { Command } from "commander";
import { addA2aCommands } from "./a2a.ts";
import { addDeploymentCommands } from "./deployment.ts";
import { addRunCommand } from "./run.ts";
import { addTemplateCommands } from "./template.ts";

export function addPlatformCommands(program: Command): void {
  const platform = program
    .command("platform")
    .description("manage templates and deployments, run assistants, send agent-to-agent messages");
  addTemplateCommands(platform);
  addDeploymentCommands(platform);
  addRunCommand(platform);
  addA2aCommands(platform);
}

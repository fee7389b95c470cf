import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { UsageError } from "../../errors.ts";
import {
  type ControlPlaneClient,
  type Deployment,
  hasFailed,
  type SandboxTemplate,
} from "../../platform/agents/control-plane.ts";
import { table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import {
  openControlPlane,
  parseDuration,
  type SourceOption,
  withSource,
} from "../session/platform-access.ts";
import { inSession, type Session } from "../session/session.ts";
import { addRunCommands } from "./platform-run.ts";

/** Cloud deployments take some minutes. */
const WITHIN_MS = 30 * 60_000;

interface WaitOptions extends SourceOption {
  readonly within: number;
}

interface BodyOptions extends WaitOptions {
  readonly body?: string;
  readonly wait?: boolean;
}

export function addPlatformCommands(program: Command): void {
  const platform = program
    .command("platform")
    .description("the platform's other calls: sandbox templates, deployments, runs, agent-to-agent");
  const template = platform.command("template").description("sandbox templates");
  withSource(template.command("get <name>"))
    .description("one template")
    .action(
      inSession(async (session: Session, options: SourceOption, name: string) => {
        const found = await openControlPlane(session, options).template(name, session);
        session.output.data(found, describeTemplate);
      }),
    );
  withSource(template.command("rename <name> <new-name>"))
    .description("give a template another name, which is all that can be changed of it")
    .action(
      inSession(async (session: Session, options: SourceOption, name: string, to: string) => {
        const renamed = await openControlPlane(session, options).renameTemplate({ name, to }, session);
        session.output.data(renamed, describeTemplate);
      }),
    );

  const deployment = platform.command("deployment").description("deployments and their revisions");
  const withWait = (command: Command): Command =>
    withSource(command)
      .option("--body <file>", "JSON file with the request's body; - reads it from stdin")
      .option("--wait", "wait until the revision is deployed")
      .option("--within <duration>", "how long to wait", parseDuration, WITHIN_MS);
  withWait(deployment.command("create"))
    .description("create a deployment; its fields are the platform's own and are passed on as they are")
    .action(
      inSession(async (session: Session, options: BodyOptions) => {
        const client = openControlPlane(session, options);
        return finish(session, client, options, await client.createDeployment(bodyOf(options), session));
      }),
    );
  withSource(deployment.command("get <id>"))
    .description("one deployment and the status of its latest revision")
    .action(
      inSession(async (session: Session, options: SourceOption, id: string) => {
        const client = openControlPlane(session, options);
        const found = await client.deployment(id, session);
        const revisionId = found.latestRevisionId;
        const revision = revisionId && (await client.revision({ deploymentId: id, revisionId }, session));
        session.output.data({ ...found, status: revision ? revision.status : null }, describeDeployment);
      }),
    );
  withWait(deployment.command("update <id>"))
    .description("update a deployment; a changed source makes a new revision")
    .action(
      inSession(async (session: Session, options: BodyOptions, id: string) => {
        const client = openControlPlane(session, options);
        const updated = await client.updateDeployment({ id, body: bodyOf(options) }, session);
        return finish(session, client, options, updated);
      }),
    );
  withSource(deployment.command("wait <id>"))
    .description(
      "wait until a deployment's revision is deployed; exit code 3 where it fails or takes too long",
    )
    .option("--revision <id>", "another revision than the latest")
    .option("--within <duration>", "how long to wait", parseDuration, WITHIN_MS)
    .action(
      inSession(async (session: Session, options: WaitOptions & { revision?: string }, id: string) => {
        const client = openControlPlane(session, options);
        const found = await client.deployment(id, session);
        return wait(session, client, options, {
          ...found,
          latestRevisionId: options.revision ?? found.latestRevisionId,
        });
      }),
    );
  addRunCommands(platform);
}

async function finish(
  session: Session,
  client: ControlPlaneClient,
  options: BodyOptions,
  deployment: Deployment,
): Promise<number> {
  if (options.wait === true) return wait(session, client, options, deployment);
  session.output.data({ ...deployment, status: null }, describeDeployment);
  return EXIT.done;
}

/** Tells each status as it comes; a failed revision is data as well, and an exit code. */
async function wait(
  { output, signal }: Session,
  client: ControlPlaneClient,
  { within }: WaitOptions,
  deployment: Deployment,
): Promise<number> {
  const { id: deploymentId, latestRevisionId: revisionId } = deployment;
  if (revisionId === null) {
    throw new UsageError({
      code: "revision_missing",
      message: `Deployment ${deploymentId} has no revision.`,
      next: "Update it with a source, then wait again.",
    });
  }
  let told = "";
  const revision = await client.waitForRevision(
    { deploymentId, revisionId },
    {
      withinMs: within,
      signal,
      onStatus: (status) => {
        if (status !== told) output.note(`${revisionId}: ${status}`);
        told = status;
      },
    },
  );
  output.data({ ...deployment, status: revision.status }, describeDeployment);
  return hasFailed(revision) ? EXIT.partlyFailed : EXIT.done;
}

/** Errors: `body_missing`, `body_invalid`. */
function bodyOf({ body: file }: BodyOptions): Record<string, unknown> {
  const next = "Give a file that holds one JSON object: --body deployment.json, or --body - for stdin.";
  if (file === undefined) throw new UsageError({ code: "body_missing", message: "--body is missing.", next });
  try {
    const body: unknown = JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8"));
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return { ...body };
    throw new Error("it holds no object");
  } catch (error) {
    // Not what is in it: bodies hold secrets, and a parser's message repeats them.
    const reason = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    throw new UsageError({ code: "body_invalid", message: `--body ${file}: ${reason}.`, next });
  }
}

function describeTemplate({
  name,
  id,
  image,
  resources,
  volumeMounts,
  proxyConfig,
}: SandboxTemplate): string {
  const rules = (proxyConfig?.rules as unknown[] | undefined)?.length ?? 0;
  const limits = Object.entries(resources).filter(([, value]) => value !== null);
  return table(
    ["name", "image", "limits", "volumes", "proxy rules", "id"],
    [
      [
        name,
        image,
        limits.map(([what, value]) => `${what} ${value}`).join(", "),
        volumeMounts.length,
        rules,
        id,
      ],
    ],
  );
}

function describeDeployment({
  id,
  name,
  latestRevisionId,
  status,
}: Deployment & { status: string | null }): string {
  return table(["id", "name", "latest revision", "status"], [[id, name, latestRevisionId, status]]);
}

import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import {
  type ControlPlaneClient,
  type Deployment,
  hasFailed,
} from "../../../platform/agents/control-plane.ts";
import { table } from "../../report/output.ts";
import { EXIT } from "../../session/exit.ts";
import {
  openControlPlane,
  type SourceOption,
  type WithinOption,
  withSource,
  withWithin,
} from "../../session/platform-access.ts";
import { inSession, type Session } from "../../session/session.ts";

/** Cloud deployments take some minutes. */
const WITHIN_MS = 30 * 60_000;

interface WaitOptions extends SourceOption, WithinOption {}

interface BodyOptions extends WaitOptions {
  readonly body?: string;
  readonly wait?: boolean;
}

export function addDeploymentCommands(platform: Command): void {
  const deployment = platform.command("deployment").description("manage deployments and their revisions");
  const withBody = (command: Command): Command =>
    withWithin(
      withSource(command)
        .option("--body <file>", "JSON file with the request body; - reads stdin")
        .option("--wait", "wait until the revision is deployed"),
      WITHIN_MS,
    );
  withBody(deployment.command("create"))
    .description("create a deployment; the body goes to the platform unchanged")
    .action(
      inSession(async (session: Session, options: BodyOptions) => {
        const client = openControlPlane(session, options);
        return finish(session, client, options, await client.createDeployment(bodyOf(options), session));
      }),
    );
  withSource(deployment.command("get <id>"))
    .description("show one deployment and the status of its latest revision")
    .action(
      inSession(async (session: Session, options: SourceOption, id: string) => {
        const client = openControlPlane(session, options);
        const found = await client.deployment(id, session);
        const revisionId = found.latestRevisionId;
        const revision = revisionId && (await client.revision({ deploymentId: id, revisionId }, session));
        session.output.data({ ...found, status: revision ? revision.status : null }, describeDeployment);
      }),
    );
  withBody(deployment.command("update <id>"))
    .description("update a deployment; a changed source creates a revision")
    .action(
      inSession(async (session: Session, options: BodyOptions, id: string) => {
        const client = openControlPlane(session, options);
        const updated = await client.updateDeployment({ id, body: bodyOf(options) }, session);
        return finish(session, client, options, updated);
      }),
    );
  withWithin(withSource(deployment.command("wait <id>")), WITHIN_MS)
    .description("wait until a revision is deployed; exit with 3 if it fails or takes too long")
    .option("--revision <id>", "this revision instead of the latest")
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

/** Prints each new status. A failed revision is data and an exit code, not an error. */
async function wait(
  { output, signal }: Session,
  client: ControlPlaneClient,
  { within: withinMs }: WaitOptions,
  deployment: Deployment,
): Promise<number> {
  const { id: deploymentId, latestRevisionId: revisionId } = deployment;
  let status: string | null = null;
  const onStatus = (seen: string) => {
    if (seen !== status) output.note(`${revisionId}: ${seen}`);
    status = seen;
  };
  try {
    if (revisionId === null) throw revisionMissing(deploymentId);
    const of = { deploymentId, revisionId };
    const revision = await client.waitForRevision(of, { withinMs, signal, onStatus });
    return hasFailed(revision) ? EXIT.partlyFailed : EXIT.done;
  } finally {
    // What was created has an id, however the wait ends.
    output.data({ ...deployment, status }, describeDeployment);
  }
}

function revisionMissing(deploymentId: string): UsageError {
  return new UsageError({
    code: "revision_missing",
    message: `Deployment ${deploymentId} has no revision.`,
    next: "Update it with a source, then wait again.",
  });
}

/** Errors: `body_missing`, `body_invalid`. */
function bodyOf({ body: file }: BodyOptions): Record<string, unknown> {
  const next = "Give a file with one JSON object (--body deployment.json), or --body - for stdin.";
  if (file === undefined) throw new UsageError({ code: "body_missing", message: "--body is missing.", next });
  try {
    const body: unknown = JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8"));
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return { ...body };
    throw new Error("it holds no object");
  } catch (error) {
    // Bodies hold secrets, and the parser's message repeats parts of them.
    const reason = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    throw new UsageError({ code: "body_invalid", message: `--body ${file}: ${reason}.`, next });
  }
}

function describeDeployment(deployment: Deployment & { status: string | null }): string {
  const { id, name, latestRevisionId, status } = deployment;
  return table(["id", "name", "latest revision", "status"], [[id, name, latestRevisionId, status]]);
}

import type { RoomState } from "../world.ts";
import { Deployments } from "./deployments.ts";
import { Templates } from "./templates.ts";

/** What the control plane knows. */
export class ControlPlane implements RoomState {
  readonly templates: Templates;
  readonly deployments: Deployments;

  constructor(now: () => number) {
    this.templates = new Templates(now);
    this.deployments = new Deployments(now);
  }

  close(): void {}

  inspect(): object {
    return { ...this.templates.inspect(), ...this.deployments.inspect() };
  }
}

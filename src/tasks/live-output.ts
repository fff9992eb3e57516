import type { Cluster } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { TaskDefinition, TaskName, TaskOrigin } from './definition.ts';
import { isStreamKind, type TaskKind } from './kind.ts';

export interface LiveOutput {
  readonly application: Application;
  readonly output: OutputStream;
}

const numbers = new WeakMap<OutputStream, number>();
let last = 0;

/** Number of an output stream, unique among all that this process has had. */
export function numberOf(output: OutputStream): number {
  const known = numbers.get(output);
  if (known !== undefined) return known;
  numbers.set(output, ++last);
  return last;
}

function isOf({ node, number }: TaskOrigin, { self }: Pick<Cluster, 'self'>, output: OutputStream): boolean {
  return node === self.incarnation && number === numberOf(output);
}

/** The live output stream that a task follows, when this node has it and may run the task beside it. */
export function liveOutput(
  { registry, kind, cluster }: { registry: Registry; kind: TaskKind; cluster: Pick<Cluster, 'self'> },
  { vhost, app }: TaskName,
  { spec, origin }: TaskDefinition,
): LiveOutput | undefined {
  if (!isStreamKind(kind)) return undefined;
  const application = registry.vhosts.get(vhost)?.applications.get(app);
  const output = application?.outputs.get(kind.follows(spec) ?? '');
  if (application === undefined || output === undefined) return undefined;
  if (origin !== undefined && !isOf(origin, cluster, output)) return undefined;
  return output.closed || output.tracks.length === 0 ? undefined : { application, output };
}

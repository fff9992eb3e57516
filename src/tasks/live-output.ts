import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { OutputStream } from '../core/stream.ts';
import type { TaskName } from './definition.ts';

/** The output stream that a task follows, when this node has it and it is live. */
export function liveOutput(
  { vhosts }: Registry,
  { vhost, app }: TaskName,
  stream: string,
): { readonly application: Application; readonly output: OutputStream } | undefined {
  const application = vhosts.get(vhost)?.applications.get(app);
  const output = application?.outputs.get(stream);
  if (application === undefined || output === undefined) return undefined;
  return output.closed || output.tracks.length === 0 ? undefined : { application, output };
}

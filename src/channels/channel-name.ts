import type { Application } from '../core/application.ts';
import type { Source } from '../core/source.ts';
import type { ReservedNames } from '../directory/stream-names.ts';
import type { TaskName } from '../tasks/definition.ts';
import type { TaskDefinitions } from '../tasks/definitions.ts';
import { CHANNEL_KINDS } from './channel-kind.ts';

/** Name of the task of a channel. */
export function taskName(
  { name: kind }: { readonly name: string },
  { vhost, name }: Application,
  id: string,
): TaskName {
  return { kind, vhost: vhost.name, app: name, id };
}

/**
 * Whether a stream name belongs to a channel, as far as this node knows. No other source gets that name, even while the
 * channel is off the air. Where files define channels of both kinds with one name, the first kind has it; a stored
 * definition has precedence.
 */
export function isOfChannel(
  definitions: Pick<TaskDefinitions, 'get' | 'stored'>,
  application: Application,
  name: string,
  source: Source,
): boolean {
  const enabled = CHANNEL_KINDS.filter((kind) => kind.isEnabled(application.config));
  const first =
    enabled.find((kind) => definitions.stored(taskName(kind, application, name)) !== undefined) ??
    enabled.find((kind) => definitions.get(taskName(kind, application, name)) !== undefined);
  return first !== undefined && first.name !== source.kind;
}

/** Stream names reserved for channels. */
export function channelNames(definitions: Pick<TaskDefinitions, 'get' | 'stored'>): ReservedNames {
  return {
    mayBeIn: ({ config }) => CHANNEL_KINDS.some((kind) => kind.isEnabled(config)),
    has: (...wanted) => isOfChannel(definitions, ...wanted),
  };
}

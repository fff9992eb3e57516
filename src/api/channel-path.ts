import Type from 'typebox';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { ChannelKind } from '../channels/channel-kind.ts';
import { ApplicationPath, findApplication } from './lookup.ts';

/** Names in the path of a channel. */
export const ChannelPath = Type.Object({ ...ApplicationPath.properties, channel: Type.String() });

interface ApplicationNames {
  readonly vhost: string;
  readonly app: string;
}

/**
 * The application of a path that has channels of a kind.
 * @throws vhostNotFound, applicationNotFound, channelsForbidden
 */
export function findForChannels(registry: Registry, path: ApplicationNames, kind: ChannelKind<unknown>): Application {
  const application = findApplication(registry, path);
  demandChannels(application, kind);
  return application;
}

/**
 * The application of a channel's path: whether it is missing or the channel makes no difference there.
 * @param kind that the application has to have; undefined: it need not any more
 * @throws vhostNotFound, channelNotFound, channelsForbidden
 */
export function findOfChannel(registry: Registry, path: ApplicationNames, kind?: ChannelKind<unknown>): Application {
  try {
    return kind === undefined ? findApplication(registry, path) : findForChannels(registry, path, kind);
  } catch (error) {
    if (error instanceof KilnError && error.code === 'applicationNotFound') throw kilnError('channelNotFound');
    throw error;
  }
}

/** @throws channelsForbidden when the application does not enable the provider of such channels */
export function demandChannels({ config }: Application, kind: ChannelKind<unknown>): void {
  if (!kind.isEnabled(config)) throw kilnError('channelsForbidden');
}

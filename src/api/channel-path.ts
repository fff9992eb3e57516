import Type from 'typebox';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { ChannelKind } from '../channels/channel-kind.ts';
import { ApplicationPath, findApplication } from './lookup.ts';

export const ChannelPath = Type.Object({ ...ApplicationPath.properties, channel: Type.String() });

interface ApplicationNames {
  readonly vhost: string;
  readonly app: string;
}

/** Application of a path, if it may have channels of a kind. @throws vhostNotFound, applicationNotFound, channelsForbidden */
export function findForChannels(registry: Registry, path: ApplicationNames, kind: ChannelKind<unknown>): Application {
  const application = findApplication(registry, path);
  demandChannels(application, kind);
  return application;
}

/**
 * Application of a channel's path. A missing application counts as a missing channel.
 * @param kind that the application must enable; undefined: it may have been disabled since
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

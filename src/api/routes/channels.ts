import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError } from '../../errors.ts';
import { MULTIPLEX, SCHEDULED, type ChannelKind } from '../../channels/channel-kind.ts';
import type { Channel, Channels } from '../../channels/channels.ts';
import { Limiter } from '../../lib/limiter.ts';
import { answers, ok } from '../envelope.ts';
import { MultiplexChannel, multiplexChannel } from '../multiplex-channel.ts';
import { markStale } from '../forwarding/read-your-writes.ts';
import { ScheduledChannel, scheduledChannel } from '../scheduled-channel.ts';

/** Limit of channels that are looked up at a time, over all calls: each may take a question to another node. */
const AT_ONCE = 32;

const Named = { vhost: Type.String(), app: Type.String(), name: Type.String() };
const Row = Type.Union([
  Type.Object({ ...Named, kind: Type.Literal('scheduledChannels'), channel: Type.Optional(ScheduledChannel) }),
  Type.Object({ ...Named, kind: Type.Literal('multiplexChannels'), channel: Type.Optional(MultiplexChannel) }),
]);
export type ChannelRow = Static<typeof Row>;

/** Overview of the channels of all applications, each as the call for that channel shows it. */
export function channelRoutes(registry: Registry, channels: Channels): FastifyPluginAsyncTypebox {
  const lookups = new Limiter(AT_ONCE);
  /** Channels of one kind; without `channel` if their node does not answer. */
  const rowsOf = async <S>(
    application: Application,
    kind: ChannelKind<S>,
    row: (name: string, found: Channel<S> | undefined) => ChannelRow,
  ): Promise<ChannelRow[]> => {
    if (!kind.isEnabled(application.config)) return [];
    const names = await channels.names(kind, application);
    const rows = names.map(async (name) => {
      try {
        return [row(name, await lookups.run(() => channels.find(kind, application, name)))];
      } catch (error) {
        if (!(error instanceof KilnError)) throw error;
        return error.code === 'channelNotFound' ? [] : [row(name, undefined)];
      }
    });
    return (await Promise.all(rows)).flat();
  };
  return async (app) => {
    const schema = { response: answers(Type.Array(Row)), summary: 'List the channels of all applications' };
    app.get('/v1/cluster/channels', { schema }, async (_request, reply) => {
      const applications = [...registry.vhosts.values()].flatMap((vhost) => [...vhost.applications.values()]);
      const lists = await Promise.all(
        applications.flatMap((application) => {
          const at = (name: string) => ({ vhost: application.vhost.name, app: application.name, name });
          return [
            rowsOf(application, SCHEDULED, (name, found) => ({
              ...at(name),
              kind: 'scheduledChannels',
              ...(found && { channel: scheduledChannel(name, found.spec, found.report) }),
            })),
            rowsOf(application, MULTIPLEX, (name, found) => ({
              ...at(name),
              kind: 'multiplexChannels',
              ...(found && { channel: multiplexChannel(name, found.spec, found.report) }),
            })),
          ];
        }),
      );
      const rows = lists.flat();
      if (rows.some(({ channel }) => channel === undefined)) markStale(reply);
      return ok(rows);
    });
  };
}

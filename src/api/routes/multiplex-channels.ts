import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { MULTIPLEX } from '../../channels/channel-kind.ts';
import type { Channels } from '../../channels/channels.ts';
import { checkMultiplex } from '../../channels/multiplex/check.ts';
import { ChannelPath, demandChannels, findForChannels, findOfChannel } from '../channel-path.ts';
import { checkedChannel } from '../requests/channel-request.ts';
import { shown } from '../config-schema.ts';
import { answers, created, done, ErrorBody, noPayload, objectOf, ok } from '../envelope.ts';
import { ApplicationPath } from '../lookup.ts';
import { MultiplexChannel, multiplexChannel } from '../multiplex-channel.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/multiplexChannels';

/** Channels that join tracks of several streams, on whichever node they run. */
export function multiplexChannelRoutes(registry: Registry, channels: Channels): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = {
      params: ApplicationPath,
      response: answers(Type.Array(Type.String())),
      summary: 'List the multiplex channels',
    };
    app.get(BASE, { schema: list }, async ({ params }) =>
      ok(await channels.names(MULTIPLEX, findForChannels(registry, params, MULTIPLEX))),
    );

    const response = { 201: ErrorBody, '4xx': ErrorBody, '5xx': ErrorBody };
    const body = shown('MultiplexChannelCreation');
    const creation = { params: ApplicationPath, body, response, summary: 'Create a multiplex channel' };
    app.post(BASE, { schema: creation }, async ({ params, body }, reply) => {
      const application = findForChannels(registry, params, MULTIPLEX);
      const { name, spec } = checkedChannel(checkMultiplex(objectOf(body)));
      await channels.create(MULTIPLEX, application, name, spec);
      reply.code(201);
      return created;
    });

    const read = { params: ChannelPath, response: answers(MultiplexChannel), summary: 'Show a multiplex channel' };
    app.get(`${BASE}/:channel`, { schema: read }, async ({ params }) => {
      const { name, spec, report } = await channels.find(
        MULTIPLEX,
        findOfChannel(registry, params, MULTIPLEX),
        params.channel,
      );
      return ok(multiplexChannel(name, spec, report));
    });

    const removal = { params: ChannelPath, response: noPayload, summary: 'Delete a multiplex channel' };
    app.delete(`${BASE}/:channel`, { schema: removal }, async ({ params }) => {
      const application = findOfChannel(registry, params);
      if (await channels.remove(MULTIPLEX, application, params.channel)) return done;
      demandChannels(application, MULTIPLEX);
      throw kilnError('channelNotFound');
    });
  };
}
